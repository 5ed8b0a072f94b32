//! Bad input: one line that names it and says what to do, and exit code 2.

use std::fs;
use std::path::Path;

use crate::run::{gzip, run, tar_of, write_images, write_png};

const QUICK: &str = "bench --pin-memory off --batch-size 2 --num-workers 1 --work-ms 0 --runs 1";

#[track_caller]
fn refused(args: &str, words: &[&str]) {
    let here = tempfile::tempdir().unwrap();
    let ran = run(here.path(), &format!("bench {args}"));
    ran.refused(words);
    assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1), "{}", ran.stderr);
}

#[test]
fn numbers_out_of_range() {
    for value in ["0", "-1", "x", "1.5", "1000000001", "99999999999999999999999"] {
        let named = format!("invalid value '{value}' for '--batch-size");
        refused(&format!("--batch-size {value}"), &[&named, "from 1 to 1000000000", "try --help"]);
    }
    for value in ["1025", "-1", "many"] {
        let named = format!("'{value}' for '--num-workers");
        refused(&format!("--num-workers {value}"), &[&named, "from 0 to 1024"]);
    }
    for value in ["-5", "soon", "nan", "1e3"] {
        refused(&format!("--work-ms {value}"), &[value, "--work-ms", "from 0 to 3600000"]);
    }
    for value in ["0", "-2", "all"] {
        refused(&format!("--runs {value}"), &[value, "--runs", "from 1 to 1000000"]);
    }
}

#[test]
fn devices_that_are_not_there() {
    for device in ["cuda", "cuda:0"] {
        let named = format!("'{device}' for '--device");
        refused(&format!("--device {device}"), &[&named, "not there", "`auto` or `cpu`"]);
    }
    refused("--device tpu", &["'tpu' for '--device", "no such device", "`auto` or `cpu`"]);
}

#[test]
fn words_that_are_no_settings() {
    refused("--pin-memory of", &["'of' for '--pin-memory", "off, on, lock, both"]);
    refused("--frobnicate", &["--frobnicate", "try --help"]);
    refused("--data synthetic:0", &["synthetic:0", "from 1 to 1000000000"]);
    refused("--data synthetic:many", &["synthetic:many", "`synthetic:10000`"]);
    refused("--data=", &["--data", "`synthetic`"]);
    refused("--json=", &["--json", "`-`"]);
    let here = tempfile::tempdir().unwrap();
    run(here.path(), "frobnicate").refused(&["frobnicate", "try --help"]);
}

#[test]
fn a_json_file_that_can_not_be_written() {
    // Before the run: the data is not even looked at.
    refused("--data nothing --json nowhere/x.json", &["nowhere/x.json", "can not be written"]);
    refused("--data nothing --json .", &["--json .", "can not be written", "give a file"]);
}

#[track_caller]
fn refused_data(here: &Path, data: &str, words: &[&str]) {
    let ran = run(here, &format!("{QUICK} --data {data} --json -"));
    ran.refused(words);
    assert_eq!(ran.stdout, "");
}

#[test]
fn data_that_can_not_be_opened() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    refused_data(here, "nothing", &["nothing", "No such file", "give a directory"]);

    fs::create_dir(here.join("empty")).unwrap();
    refused_data(here, "empty", &["(empty)", "no class folders", "lay it out as"]);

    fs::create_dir_all(here.join("imageless/cat")).unwrap();
    refused_data(here, "imageless", &["imageless", "`cat`"]);

    fs::write(here.join("notes.txt"), "notes").unwrap();
    refused_data(here, "notes.txt", &["notes.txt", "is text", ".tar"]);
}

#[test]
fn archives_that_are_cut() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    write_images(&here.join("images"));
    let tar = tar_of(&here.join("images"));
    fs::write(here.join("cut.tar"), &tar[..tar.len() / 2]).unwrap();
    refused_data(here, "cut.tar", &["cut.tar", "cut or damaged", "get it again"]);

    let gz = gzip(&tar);
    fs::write(here.join("cut.tar.gz"), &gz[..gz.len() / 2]).unwrap();
    refused_data(here, "cut.tar.gz", &["cut.tar.gz", "cut or damaged", "get it again"]);
}

#[test]
fn images_that_can_not_be_decoded() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    write_images(&here.join("text"));
    fs::write(here.join("text/cat/2.jpg"), "This is text.").unwrap();
    refused_data(here, "text", &["text/cat/2.jpg", "is text", "sample 1"]);

    write_images(&here.join("cut"));
    let png = fs::read(here.join("cut/dog/1.png")).unwrap();
    fs::write(here.join("cut/dog/1.png"), &png[..png.len() / 2]).unwrap();
    refused_data(here, "cut", &["cut/dog/1.png", "sample 3"]);
}

#[test]
fn images_of_several_sizes_in_a_batch() {
    let here = tempfile::tempdir().unwrap();
    write_png(&here.path().join("images/cat/1.png"), [4, 2], [0; 3]);
    write_png(&here.path().join("images/cat/2.png"), [5, 3], [0; 3]);
    refused_data(here.path(), "images", &["batch 0", "[3, 2, 4]", "[3, 3, 5]"]);
}

/// A path may have a line break in it; the error has none.
#[test]
fn one_line_whatever_the_name() {
    let here = tempfile::tempdir().unwrap();
    let output = crate::run::command(here.path(), QUICK).args(["--data", "two\nlines"]).output();
    let ran = crate::run::Ran::from(output.unwrap());
    ran.refused(&["two lines"]);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn locked_memory_beyond_the_limit() {
    if pinfeed::mem::lock_limit().is_none() {
        eprintln!("skipped: locked_memory_beyond_the_limit: this process has CAP_IPC_LOCK");
        return;
    }
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -l 64 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_pinfeed")])
        .args("bench --data synthetic:100 --pin-memory lock".split(' '))
        .output();
    let ran = crate::run::Ran::from(output.unwrap());
    ran.refused(&["65536 bytes", "ulimit -l", "smaller batch_size"]);
}
