//! Which data is taken, and what it is said to be.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::run::{gzip, run, tar_of, write_images, write_png};

const QUICK: &str =
    "bench --pin-memory off --batch-size 1000 --num-workers 1 --work-ms 0 --runs 1 --json -";

/// Kind, path, samples and classes of the data taken.
#[track_caller]
fn taken(here: &Path, args: &str) -> Value {
    let data = &run(here, &format!("{QUICK} {args}")).json()["data"];
    json!([data["kind"], data["path"], data["samples"], data["classes"]])
}

#[test]
fn without_data_it_is_made_up() {
    let here = tempfile::tempdir().unwrap();
    let ran = run(here.path(), QUICK);
    let data = &ran.json()["data"];
    assert_eq!((&data["kind"], &data["samples"]), (&json!("synthetic"), &json!(50_000)));
    assert!(ran.stderr.contains("(no images in ./data, no --data)"), "{}", ran.stderr);
}

#[test]
fn a_data_folder_without_images_is_none() {
    let here = tempfile::tempdir().unwrap();
    fs::create_dir_all(here.path().join("data/notes")).unwrap();
    fs::write(here.path().join("data/notes/a.txt"), "").unwrap();
    fs::write(here.path().join("data/1.png"), "").unwrap();
    assert_eq!(taken(here.path(), "")[0], "synthetic");
}

#[test]
fn images_in_the_data_folder_are_found() {
    let here = tempfile::tempdir().unwrap();
    let data = here.path().join("data");
    write_images(&data);
    assert_eq!(taken(here.path(), ""), json!(["folder", "./data", 4, 2]));
    // Unless other data is asked for.
    assert_eq!(taken(here.path(), "--data synthetic:7"), json!(["synthetic", null, 7, 10]));
}

#[test]
fn a_train_folder_is_preferred() {
    let here = tempfile::tempdir().unwrap();
    write_images(&here.path().join("data/train"));
    write_png(&here.path().join("data/test/cat/1.png"), [4, 2], [0; 3]);
    assert_eq!(taken(here.path(), ""), json!(["folder", "./data/train", 4, 2]));
}

#[test]
fn archives_in_the_data_folder_are_found() {
    let here = tempfile::tempdir().unwrap();
    let (images, data) = (here.path().join("images"), here.path().join("data"));
    write_images(&images);
    let tar = tar_of(&images);
    fs::create_dir(&data).unwrap();
    fs::write(data.join(".hidden.tar"), "").unwrap();
    fs::write(data.join("b.tar"), &tar).unwrap();
    fs::write(data.join("c.tar"), "not opened").unwrap();
    assert_eq!(taken(here.path(), ""), json!(["tar", "./data/b.tar", 4, 2]));
    fs::write(data.join("z-Train.tgz"), gzip(&tar)).unwrap();
    assert_eq!(taken(here.path(), ""), json!(["tar.gz", "./data/z-Train.tgz", 4, 2]));
    fs::write(data.join("a-train.tar.gz"), gzip(&tar)).unwrap();
    assert_eq!(taken(here.path(), ""), json!(["tar.gz", "./data/a-train.tar.gz", 4, 2]));
}

#[test]
fn found_data_that_is_damaged_is_an_error() {
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join("data")).unwrap();
    fs::write(here.path().join("data/train.tar.gz"), "no archive").unwrap();
    run(here.path(), QUICK).refused(&["./data/train.tar.gz", "--data synthetic"]);
}

#[test]
fn the_content_of_an_archive_decides() {
    let here = tempfile::tempdir().unwrap();
    write_images(&here.path().join("images"));
    let tar = tar_of(&here.path().join("images"));
    fs::write(here.path().join("x.tar"), gzip(&tar)).unwrap();
    assert_eq!(taken(here.path(), "--data x.tar"), json!(["tar.gz", "x.tar", 4, 2]));
}

/// What opening the data warns of is no less true for a command.
#[test]
fn warnings_of_the_data_are_passed_on() {
    let here = tempfile::tempdir().unwrap();
    write_images(&here.path().join("images"));
    fs::copy(here.path().join("images/cat/1.png"), here.path().join("images/stray.png")).unwrap();
    let ran = run(here.path(), &format!("{QUICK} --data images"));
    assert_eq!(ran.json()["data"]["samples"], 4);
    assert!(ran.stderr.contains("warning: 1 images lie beside"), "{}", ran.stderr);
}
