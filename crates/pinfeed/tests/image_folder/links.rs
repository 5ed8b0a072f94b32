//! Links in archives: a sample like any other, or an error; never left out.

use super::make::{append, dot, file, get, gz, open, paths, refused};

fn link(builder: &mut tar::Builder<Vec<u8>>, kind: tar::EntryType, path: &str, target: &str) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(0);
    builder.append_link(&mut header, path, target).unwrap();
}

const HARD: tar::EntryType = tar::EntryType::Link;
const SYMBOLIC: tar::EntryType = tar::EntryType::Symlink;

/// An archive of two images and these links.
fn with(links: &[(tar::EntryType, &str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    append(&mut builder, "t/a/1.png", &dot(1));
    for (kind, path, target) in links {
        link(&mut builder, *kind, path, target);
    }
    append(&mut builder, "t/b/1.png", &dot(2));
    builder.into_inner().unwrap()
}

#[test]
fn a_link_to_an_image_is_that_image() {
    let tar = with(&[
        (HARD, "t/a/2.png", "t/a/1.png"),
        (SYMBOLIC, "t/a/3.png", "../b/1.png"),
        (SYMBOLIC, "t/c/1.png", "../a/./3.png"),
        (SYMBOLIC, "t/b/readme", "/usr/share/doc"),
    ]);
    for (name, bytes) in [("x.tar", &tar), ("x.tgz", &gz(&tar))] {
        let file = file(name, bytes);
        let folder = open(file.path());
        assert_eq!(
            paths(&folder, file.path()),
            ["t/a/1.png", "t/a/2.png", "t/a/3.png", "t/b/1.png", "t/c/1.png"]
        );
        let values: Vec<u8> = (0..5).map(|i| get(&folder, i).unwrap().pixels[0]).collect();
        assert_eq!(values, [1, 1, 2, 2, 2]);
    }
}

#[test]
fn a_link_to_what_is_not_there_is_an_error() {
    for (kind, target) in [
        (HARD, "t/a/9.png"),
        (SYMBOLIC, "../c/1.png"),
        (SYMBOLIC, "/data/1.png"),
        (SYMBOLIC, "../../../1.png"),
        (SYMBOLIC, "5.png"),
    ] {
        let file = file("x.tar", &with(&[(kind, "t/a/5.png", target)]));
        let error = refused(file.path());
        assert!(error.contains("`t/a/5.png` is a link to"), "{error}");
        assert!(error.contains("--dereference"), "{error}");
    }
}

#[test]
fn a_link_to_a_folder_of_images_is_an_error() {
    let file = file("x.tar", &with(&[(SYMBOLIC, "t/c", "a")]));
    let error = refused(file.path());
    assert!(error.contains("`t/c` is a link to `a`, a folder of images"), "{error}");
}
