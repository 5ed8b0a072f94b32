//! Good archives, of every kind that `tar` programs make.

use std::sync::Arc;

use pinfeed::{DataLoader, Dataset, ImageFolder};

use super::make::{append, directory, dot, file, get, gz, open, paths, tar};

fn members() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("train/b/1.png", dot(1)),
        ("train/a/2.png", dot(2)),
        ("train/note.txt", b"x".to_vec()),
        ("train/a/more/1.png", dot(3)),
        ("train/.hidden/1.png", dot(9)),
        ("train/a/._2.png", b"x".to_vec()),
        ("train/b/empty.txt", vec![]),
        ("train/b/0.PNG", dot(4)),
    ]
}

#[test]
fn an_archive_is_the_directory_it_was_made_of() {
    let from_directory = directory(&members());
    let expected = open(from_directory.path());
    let tar = tar(&members());
    // The content decides, not the name.
    for (name, bytes) in
        [("x.tar", tar.clone()), ("x.tar.gz", gz(&tar)), ("x.tgz", gz(&tar)), ("x.dat", gz(&tar))]
    {
        let file = file(name, &bytes);
        let folder = open(file.path());
        assert_eq!(folder.classes(), ["a", "b"]);
        assert_eq!(folder.labels(), expected.labels());
        assert_eq!(paths(&folder, file.path()), paths(&expected, from_directory.path()));
        for i in 0..expected.len() {
            assert_eq!(get(&folder, i).unwrap(), get(&expected, i).unwrap());
            assert_eq!(folder.read(i).unwrap(), expected.read(i).unwrap());
        }
        let shown = folder.path_of(0).unwrap().display().to_string();
        assert!(shown.ends_with(&format!("{name}: train/a/2.png")), "{shown}");
    }
}

#[test]
fn threads_read_one_file_at_the_same_time() {
    let names: Vec<String> = (0..200).map(|i| format!("c{}/{i:03}.png", i % 2)).collect();
    let members: Vec<(&str, Vec<u8>)> =
        names.iter().enumerate().map(|(i, name)| (&**name, dot(i as u8))).collect();
    let file = file("x.tar", &tar(&members));
    let folder = ImageFolder::open(file.path()).unwrap();
    let loader = DataLoader::builder(folder).batch_size(10).num_workers(4).build().unwrap();
    let mut seen = Vec::new();
    for batch in &loader {
        let pixels = batch.unwrap().tensor("image").unwrap().to_vec::<u8>().unwrap();
        seen.extend(pixels.chunks_exact(3).map(|pixel| pixel[0]));
    }
    let expected: Vec<u8> = (0..200).step_by(2).chain((1..200).step_by(2)).collect();
    assert_eq!(seen, expected);
}

/// 150 characters, some of them not ASCII.
fn long_name(class: &str, i: usize) -> String {
    format!("{class}/{}ü{i}.png", "é".repeat(70))
}

#[test]
fn long_names_read_alike_in_gnu_and_pax_form() {
    let names = [long_name("größe", 0), long_name("größe", 1), long_name("b", 2)];
    let mut gnu = tar::Builder::new(Vec::new());
    let mut pax = tar::Builder::new(Vec::new());
    for (i, name) in names.iter().enumerate() {
        assert!(name.len() > 140);
        append(&mut gnu, name, &dot(i as u8));

        let bytes = dot(i as u8);
        pax.append_pax_extensions([("path", name.as_bytes()), ("mtime", b"1.5")]).unwrap();
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_path("cut-off-name").unwrap();
        header.set_cksum();
        pax.append(&header, &bytes[..]).unwrap();
    }
    let (gnu, pax) = (gnu.into_inner().unwrap(), pax.into_inner().unwrap());
    for (name, bytes) in
        [("gnu.tar", &gnu), ("pax.tar", &pax), ("gnu.tgz", &gz(&gnu)), ("pax.tgz", &gz(&pax))]
    {
        let file = file(name, bytes);
        let folder = open(file.path());
        assert_eq!(folder.classes(), ["b", "größe"], "{name}");
        assert_eq!(paths(&folder, file.path()), [&*names[2], &*names[0], &*names[1]]);
        assert_eq!(get(&folder, 2).unwrap().pixels, [1; 3]);
    }
}

#[test]
fn folders_dots_and_members_without_bytes_are_no_trouble() {
    let mut builder = tar::Builder::new(Vec::new());
    for folder in ["./", "./a/", "./b/"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        header.as_old_mut().name[..folder.len()].copy_from_slice(folder.as_bytes());
        header.set_cksum();
        builder.append(&header, &b""[..]).unwrap();
    }
    append(&mut builder, "./a/1.png", &dot(1));
    append(&mut builder, "./b/none.txt", b"");
    append(&mut builder, "./b/1.png", &dot(2));
    let file = file("x.tar", &builder.into_inner().unwrap());
    let folder = open(file.path());
    assert_eq!(paths(&folder, file.path()), ["a/1.png", "b/1.png"]);
    assert_eq!(get(&folder, 1).unwrap().pixels, [2; 3]);
}

#[test]
fn a_folder_without_images_is_an_error_here_too() {
    let members = [("a/1.png", dot(1)), ("b/note.txt", b"x".to_vec())];
    let file = file("x.tar", &tar(&members));
    assert!(super::make::refused(file.path()).contains("`b`"));
}

#[test]
fn of_a_member_given_twice_the_later_one_counts() {
    let members = [("a/1.png", dot(1)), ("b/1.png", dot(2)), ("a/1.png", dot(3))];
    for (name, bytes) in [("x.tar", tar(&members)), ("x.tgz", gz(&tar(&members)))] {
        let file = file(name, &bytes);
        let folder = open(file.path());
        assert_eq!(folder.len(), 2);
        assert_eq!(get(&folder, 0).unwrap().pixels, [3; 3]);
    }
}

#[test]
fn joined_archives_are_read_to_their_end() {
    let (one, two) = (tar(&[("a/1.png", dot(1))]), tar(&[("b/1.png", dot(2))]));
    let joined = [one.clone(), two.clone()].concat();
    // gzip files too may be joined.
    let joined_gz = [gz(&one), gz(&two)].concat();
    for (name, bytes) in [("x.tar", joined), ("x.tgz", joined_gz)] {
        let file = file(name, &bytes);
        let folder = open(file.path());
        assert_eq!(folder.classes(), ["a", "b"], "{name}");
        assert_eq!(get(&folder, 1).unwrap().pixels, [2; 3]);
    }
}

#[test]
fn a_bad_image_in_an_archive_is_named_with_the_archive() {
    let members = [("a/1.jpg", b"text".to_vec()), ("a/2.png", dot(2))];
    for (name, bytes) in [("x.tar", tar(&members)), ("x.tar.gz", gz(&tar(&members)))] {
        let file = file(name, &bytes);
        let folder: Arc<ImageFolder> = open(file.path());
        let error = get(&folder, 0).unwrap_err().to_string();
        assert!(error.contains(&format!("{name}: a/1.jpg")), "{error}");
        assert_eq!(get(&folder, 1).unwrap().pixels, [2; 3]);
    }
}
