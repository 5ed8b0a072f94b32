//! Directories: classes, order, what is ignored, what is refused. The cases of
//! bug report BO-26 are here.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use pinfeed::{Dataset, ImageFolder};

use super::make::{directory, dot, get, open, paths, refused};

#[test]
fn classes_are_sorted_by_name() {
    let root = directory(&[
        ("90/1.png", dot(90)),
        ("180/2.png", dot(180)),
        ("180/1.png", dot(181)),
        ("0/1.png", dot(0)),
        ("270/1.png", dot(27)),
    ]);
    let folder = open(root.path());
    assert_eq!(folder.classes(), ["0", "180", "270", "90"]);
    assert_eq!(folder.labels(), [0, 1, 1, 2, 3]);
    assert_eq!((folder.len(), folder.spec()), (5, None));
    assert_eq!(paths(&folder, root.path())[..3], ["0/1.png", "180/1.png", "180/2.png"]);
    let sample = get(&folder, 1).unwrap();
    assert_eq!((sample.shape, sample.pixels, sample.label), (vec![1, 1, 3], vec![181; 3], 1));
    assert_eq!(folder.read(1).unwrap(), dot(181));
}

#[test]
fn what_is_hidden_or_no_image_is_ignored() {
    let root = directory(&[
        ("a/a.JPG", dot(1)),
        ("a/b.jPeG", dot(2)),
        ("a/Thumbs.db", b"x".to_vec()),
        ("a/note.txt", b"x".to_vec()),
        ("a/._a.jpg", b"x".to_vec()),
        ("a/.cache/c.jpg", b"x".to_vec()),
        ("a/more/deep/d.png", dot(3)),
        (".ipynb_checkpoints/a.jpg", b"x".to_vec()),
        ("b/a.Png", dot(4)),
        ("labels.csv", b"x".to_vec()),
    ]);
    let folder = open(root.path());
    assert_eq!(folder.classes(), ["a", "b"]);
    assert_eq!(
        paths(&folder, root.path()),
        ["a/a.JPG", "a/b.jPeG", "a/more/deep/d.png", "b/a.Png"]
    );
    for i in 0..4 {
        assert_eq!(get(&folder, i).unwrap().pixels, [i as u8 + 1; 3]);
    }
}

#[test]
fn a_class_without_images_is_named() {
    let root = directory(&[("a/1.png", dot(1)), ("b/note.txt", vec![]), ("d/1.png", dot(2))]);
    std::fs::create_dir(root.path().join("c")).unwrap();
    let error = refused(root.path());
    assert!(error.contains("of 4 class folders") && error.contains("`b`, `c`"), "{error}");
    assert!(error.contains("open_with_classes"), "{error}");
}

#[test]
fn a_test_set_takes_the_training_sets_classes() {
    let train = ["0", "180", "270", "90"];
    let root = directory(&[("0/1.png", dot(0)), ("90/1.png", dot(9)), ("270/1.png", dot(2))]);
    std::fs::create_dir(root.path().join("180")).unwrap();
    let folder = ImageFolder::open_with_classes(root.path(), &train).unwrap();
    assert_eq!(folder.classes(), train);
    assert_eq!(folder.labels(), [0, 2, 3]);

    // The order of the given classes is kept, and samples go by it.
    let folder =
        Arc::new(ImageFolder::open_with_classes(root.path(), &["90", "270", "180", "0"]).unwrap());
    assert_eq!(folder.labels(), [0, 1, 3]);
    assert_eq!(get(&folder, 0).unwrap().pixels, [9; 3]);

    let error = ImageFolder::open_with_classes(root.path(), &["0", "180", "270"]).unwrap_err();
    assert!(error.to_string().contains("`90` is none of the 3 classes"), "{error}");
    let error = ImageFolder::open_with_classes(root.path(), &["0", "0"]).unwrap_err();
    assert!(error.is_config() && error.to_string().contains("twice"), "{error}");
}

#[test]
fn a_single_top_folder_is_passed_over() {
    let root = directory(&[("train/a/1.png", dot(1)), ("train/b/1.png", dot(2)), ("x", vec![])]);
    assert_eq!(open(root.path()).classes(), ["a", "b"]);
}

#[test]
fn nothing_to_read_is_an_error_with_a_remedy() {
    let empty = tempfile::tempdir().unwrap();
    let error = refused(empty.path());
    assert!(error.contains("no class folders") && error.contains("<class>/x.jpg"), "{error}");

    let flat = directory(&[("1.png", dot(1)), ("2.png", dot(2))]);
    let error = refused(flat.path());
    assert!(error.contains("2 images, but not in class folders"), "{error}");

    let error = refused(empty.path().join("not-there"));
    assert!(error.contains("No such file") && error.contains(".tar.gz"), "{error}");
}

#[test]
fn links_are_followed_and_loops_are_not() {
    let root = directory(&[("a/1.png", dot(1)), ("b/1.png", dot(2)), (".store/x", dot(3))]);
    let at = |path: &str| root.path().join(path);
    symlink(root.path(), at("a/up")).unwrap();
    symlink(at("a"), at("a/self")).unwrap();
    symlink(at("b"), at("c")).unwrap();
    symlink(at(".store/x"), at("b/2.png")).unwrap();
    let folder = open(root.path());
    assert_eq!(folder.classes(), ["a", "b", "c"]);
    assert_eq!(
        paths(&folder, root.path()),
        ["a/1.png", "b/1.png", "b/2.png", "c/1.png", "c/2.png"]
    );
    assert_eq!(get(&folder, 4).unwrap().pixels, [3; 3]);

    symlink(at("nowhere"), at("b/readme")).unwrap();
    open(root.path());
    symlink(at("nowhere"), at("b/3.png")).unwrap();
    let error = ImageFolder::open(root.path()).unwrap_err().to_string();
    assert!(error.contains("b/3.png"), "{error}");
}

#[test]
fn a_file_that_went_away_is_its_samples_error() {
    let root = directory(&[("a/1.png", dot(1)), ("a/2.png", dot(2))]);
    let folder = open(root.path());
    std::fs::remove_file(root.path().join("a/1.png")).unwrap();
    let error = get(&folder, 0).unwrap_err();
    assert!(error.is_format() && error.path().unwrap().ends_with("a/1.png"), "{error}");
    assert_eq!(get(&folder, 1).unwrap().pixels, [2; 3]);
    assert!(folder.read(0).is_err());
    assert!(folder.read(2).unwrap_err().to_string().contains("out of range"));
    assert_eq!(folder.path_of(2), None);
}
