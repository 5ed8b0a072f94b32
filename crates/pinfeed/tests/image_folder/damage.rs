//! Cut and damaged archives: an error when they are opened, never a shorter
//! data set. The cases of bug report BO-23 are here.

use super::make::{append, dot, file, get, gz, open, refused, tar};
use pinfeed::{Dataset, ImageFolder};

/// Five images of several blocks, and where each one's payload ends.
fn five() -> (Vec<u8>, Vec<usize>) {
    let noise: Vec<u8> = (0..1800u32).map(|i| (i * i + i / 7) as u8).collect();
    let image = super::make::png(20, 30, png::ColorType::Rgb, png::BitDepth::Eight, &noise, None);
    assert!(image.len() > 1024 && image.len() % 512 > 20);
    let names: Vec<String> = (0..5).map(|i| format!("a/{i}.png")).collect();
    let members: Vec<(&str, Vec<u8>)> = names.iter().map(|name| (&**name, image.clone())).collect();
    let member = 512 + image.len().next_multiple_of(512);
    (tar(&members), (0..5).map(|i| i * member + 512 + image.len()).collect())
}

#[test]
fn a_cut_tar_is_an_error_wherever_the_cut_shows() {
    let (tar, ends) = five();
    let whole = |len: usize| {
        // Between the end of a payload and the next header there is nothing to
        // miss; that some members are gone can not be seen.
        ends.iter().any(|&end| (end..=end.next_multiple_of(512)).contains(&len)) || len > ends[4]
    };
    let mut refusals = 0;
    for len in (0..tar.len()).step_by(11).chain(ends.iter().map(|end| end - 1)) {
        let file = file("x.tar", &tar[..len]);
        if whole(len) {
            let expected = ends.iter().filter(|&&end| end <= len).count();
            assert_eq!(ImageFolder::open(file.path()).unwrap().len(), expected, "cut at {len}");
            continue;
        }
        refusals += 1;
        let error = refused(file.path());
        match len {
            0 => assert!(error.contains("0 bytes"), "{error}"),
            // Not even one header.
            1..512 => assert!(error.contains("too short") || error.contains("byte 0"), "{error}"),
            _ => {
                let member = ends.iter().filter(|&&end| end.next_multiple_of(512) < len).count();
                let inside = format!("in member `a/{member}.png`");
                let after = format!("after member `a/{}.png`", member.wrapping_sub(1));
                assert!(error.contains(&inside) || error.contains(&after), "cut at {len}: {error}");
                assert!(error.contains("byte ") && error.contains("checksum"), "{error}");
            }
        }
    }
    assert!(refusals > 500);
}

#[test]
fn missing_end_marks_are_no_loss() {
    let (tar, ends) = five();
    let last = ends[4].next_multiple_of(512);
    for len in [last, last + 100, last + 512, last + 700, tar.len()] {
        let file = file("x.tar", &tar[..len]);
        let folder = open(file.path());
        assert_eq!(folder.len(), 5);
        assert_eq!(get(&folder, 4).unwrap(), get(&folder, 0).unwrap());
    }
}

#[test]
fn a_cut_gz_is_an_error_wherever_it_is_cut() {
    let gz = gz(&five().0);
    for len in (1..gz.len()).step_by(23).chain(gz.len() - 12..gz.len()) {
        refused(file("x.tar.gz", &gz[..len]).path());
    }
    let error = refused(file("x.tar.gz", &gz[..gz.len() / 2]).path());
    assert!(error.contains("in member `a/") && error.contains("from byte"), "{error}");
}

#[test]
fn a_flipped_byte_in_a_gz_is_an_error() {
    let gz = gz(&five().0);
    for at in (10..gz.len()).step_by(101).chain(gz.len() - 8..gz.len()) {
        let mut bad = gz.clone();
        bad[at] ^= 0x10;
        refused(file("x.tar.gz", &bad).path());
    }
}

#[test]
fn a_bad_header_checksum_is_an_error_with_its_place() {
    let (mut tar, ends) = five();
    let header = ends[1].next_multiple_of(512);
    tar[header + 150] ^= 1;
    for (name, bytes) in [("x.tar", &tar), ("x.tgz", &gz(&tar))] {
        let error = refused(file(name, bytes).path());
        assert!(error.contains("checksum"), "{error}");
        assert!(error.contains(&format!("at byte {header}, after member `a/1.png`")), "{error}");
    }
    tar[150] ^= 1;
    let error = refused(file("x.tar", &tar).path());
    assert!(error.contains("first header"), "{error}");
}

#[test]
fn what_is_no_archive_is_named_for_what_it_is() {
    for (name, bytes, expected) in [
        ("x.tar", &b""[..], "empty (0 bytes)"),
        ("x.tar.gz", b"", "empty (0 bytes)"),
        ("x.tar", b"hello", "too short"),
        ("x.tar", &[b'x'; 600], "is text"),
        ("x.tar", &[0xfe; 600], "damaged"),
        ("x.zip", b"PK\x03\x04....", "zip"),
        ("x.tar.zst", b"\x28\xb5\x2f\xfd....", "zstd"),
        ("x.tar.xz", b"\xfd7zXZ\x00....", "xz"),
        ("x.tar.bz2", b"BZh9....", "bzip2"),
        ("x.jpg", b"\xff\xd8\xff\xe0....", "one JPEG image"),
        ("x.bin", b"\x00\x01\x02\xf0", "not known"),
    ] {
        let error = refused(file(name, bytes).path());
        assert!(error.contains(expected), "{name}: {error}");
        assert!(bytes.is_empty() || error.contains("a directory, a .tar or a .tar.gz"), "{error}")
    }
    let error = refused(file("x.tar.gz", &gz(b"just some text, compressed")).path());
    assert!(error.contains("first header"), "{error}");
    let error = refused(file("x.tar", &[0; 10240]).path());
    assert!(error.contains("no class folders"), "{error}");
}

#[test]
fn a_member_outside_of_the_archive_is_an_error() {
    let mut tar = tar(&[("a/xx/1.png", dot(1))]);
    tar[..10].copy_from_slice(b"a/../1.png");
    let mut header = tar::Header::new_old();
    header.as_mut_bytes().copy_from_slice(&tar[..512]);
    header.set_cksum();
    tar[..512].copy_from_slice(header.as_bytes());
    let error = refused(file("x.tar", &tar).path());
    assert!(error.contains("`a/../1.png`"), "{error}");
}

#[test]
fn a_sparse_image_is_an_error_and_other_sparse_files_are_not() {
    let pax = |name| {
        let mut builder = tar::Builder::new(Vec::new());
        append(&mut builder, "a/0.png", &dot(1));
        builder.append_pax_extensions([("GNU.sparse.major", &b"1"[..])]).unwrap();
        append(&mut builder, name, &dot(2));
        builder.into_inner().unwrap()
    };
    // A file of 1 MiB, of which only the last block is stored.
    let gnu = |name| {
        let mut tar = tar(&[("a/0.png", dot(1)), (name, vec![b'x'; 512])]);
        let at = 512 + dot(1).len().next_multiple_of(512);
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes().copy_from_slice(&tar[at..at + 512]);
        header.set_entry_type(tar::EntryType::GNUSparse);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.sparse[0].offset = *b"00003777000\0";
        gnu.sparse[0].numbytes = *b"00000001000\0";
        gnu.realsize = *b"00004000000\0";
        header.set_cksum();
        tar[at..at + 512].copy_from_slice(header.as_bytes());
        tar
    };
    for (bad, good) in [(pax("a/1.png"), pax("a/x.bin")), (gnu("a/1.png"), gnu("a/x.bin"))] {
        for (name, bytes) in [("x.tar", bad.clone()), ("x.tgz", gz(&bad))] {
            let error = refused(file(name, &bytes).path());
            assert!(error.contains("`a/1.png` is stored as a sparse file"), "{error}");
        }
        for (name, bytes) in [("x.tar", good.clone()), ("x.tgz", gz(&good))] {
            assert_eq!(open(file(name, &bytes).path()).len(), 1);
        }
    }
}

#[test]
fn an_archive_that_changes_after_opening_is_its_samples_error() {
    let (tar, ends) = five();
    let file = file("x.tar", &tar);
    let folder = open(file.path());
    std::fs::OpenOptions::new()
        .write(true)
        .open(file.path())
        .and_then(|file| file.set_len(ends[3] as u64))
        .unwrap();
    get(&folder, 3).unwrap();
    let error = get(&folder, 4).unwrap_err().to_string();
    assert!(error.contains("x.tar: a/4.png") && error.contains("changed"), "{error}");
}
