//! Decoding: every kind of image comes out as RGB, by its content.

use png::{BitDepth, ColorType};

use super::make::{Sample, decode_all, directory, get, open, png};

/// Decodes one image.
fn decoded(bytes: &[u8]) -> Sample {
    decode_all(&[bytes.to_vec()]).remove(0).unwrap()
}

/// JPEG files and what Pillow 13.0.0 makes of them by `convert("RGB")`, 19 x 13.
const JPEGS: [(&str, &[u8], &[u8]); 5] = [
    (
        "baseline",
        include_bytes!("../data/baseline-420.jpg"),
        include_bytes!("../data/baseline-420.rgb"),
    ),
    ("grey", include_bytes!("../data/grey.jpg"), include_bytes!("../data/grey.rgb")),
    (
        "progressive",
        include_bytes!("../data/progressive.jpg"),
        include_bytes!("../data/progressive.rgb"),
    ),
    ("cmyk", include_bytes!("../data/cmyk.jpg"), include_bytes!("../data/cmyk.rgb")),
    ("restart", include_bytes!("../data/restart.jpg"), include_bytes!("../data/restart.rgb")),
];

#[test]
fn jpeg_is_what_pillow_makes_of_it() {
    for (name, jpeg, expected) in JPEGS {
        let Sample { shape, pixels, .. } = decoded(jpeg);
        assert_eq!(shape, [13, 19, 3], "{name}");
        let apart = || pixels.iter().zip(expected).map(|(a, b)| a.abs_diff(*b));
        let mean = apart().map(f64::from).sum::<f64>() / expected.len() as f64;
        let most = apart().max().unwrap();
        assert!(
            most <= 6 && mean <= 0.5,
            "{name}: at most {most} levels apart, in the mean {mean}"
        );
    }
}

#[test]
fn png_of_every_kind_becomes_rgb() {
    let rgb = png(2, 1, ColorType::Rgb, BitDepth::Eight, &[1, 2, 3, 4, 5, 6], None);
    assert_eq!(decoded(&rgb).shape, [1, 2, 3]);
    assert_eq!(decoded(&rgb).pixels, [1, 2, 3, 4, 5, 6]);

    let rgba = png(1, 2, ColorType::Rgba, BitDepth::Eight, &[1, 2, 3, 0, 4, 5, 6, 255], None);
    assert_eq!(decoded(&rgba).shape, [2, 1, 3]);
    assert_eq!(decoded(&rgba).pixels, [1, 2, 3, 4, 5, 6]);

    let grey = png(2, 1, ColorType::Grayscale, BitDepth::Eight, &[7, 9], None);
    assert_eq!(decoded(&grey).pixels, [7, 7, 7, 9, 9, 9]);

    let grey_alpha = png(2, 1, ColorType::GrayscaleAlpha, BitDepth::Eight, &[7, 0, 9, 1], None);
    assert_eq!(decoded(&grey_alpha).pixels, [7, 7, 7, 9, 9, 9]);

    // Of 16 bits, the upper 8.
    let deep = png(2, 1, ColorType::Grayscale, BitDepth::Sixteen, &[7, 255, 200, 1], None);
    assert_eq!(decoded(&deep).pixels, [7, 7, 7, 200, 200, 200]);
    let deep = png(1, 1, ColorType::Rgb, BitDepth::Sixteen, &[1, 255, 2, 0, 3, 128], None);
    assert_eq!(decoded(&deep).pixels, [1, 2, 3]);

    // One bit: white, black.
    let bits = png(2, 1, ColorType::Grayscale, BitDepth::One, &[0b1000_0000], None);
    assert_eq!(decoded(&bits).pixels, [255, 255, 255, 0, 0, 0]);

    // A palette, one of whose colours is transparent.
    let palette: (&[u8], &[u8]) = (&[10, 20, 30, 40, 50, 60], &[255, 0]);
    let indexed = png(3, 1, ColorType::Indexed, BitDepth::Eight, &[1, 0, 1], Some(palette));
    assert_eq!(decoded(&indexed).pixels, [40, 50, 60, 10, 20, 30, 40, 50, 60]);
}

#[test]
fn the_content_decides_not_the_name() {
    let png = png(1, 1, ColorType::Rgb, BitDepth::Eight, &[1, 2, 3], None);
    assert_eq!(decoded(&png).pixels, [1, 2, 3]);
    let root = directory(&[("a/x.png", JPEGS[0].1.to_vec())]);
    assert_eq!(get(&open(root.path()), 0).unwrap().shape, [13, 19, 3]);
}

/// The errors of bad images: each must name its file.
fn refused(files: &[Vec<u8>]) -> Vec<String> {
    let check = |(i, result): (usize, Result<Sample, pinfeed::Error>)| {
        let error = match result {
            Err(error) => error,
            Ok(sample) => panic!("file {i} became an image of {:?}", sample.shape),
        };
        assert!(error.is_format() && !error.is_panic(), "{error}");
        assert!(
            error.path().is_some_and(|path| path.ends_with(format!("a/{i:06}.jpg"))),
            "{error}"
        );
        error.to_string()
    };
    decode_all(files).into_iter().enumerate().map(check).collect()
}

#[test]
fn what_is_no_image_is_named_for_what_it_is() {
    let cases: [(&[u8], &str); 6] = [
        (b"", "empty"),
        (b"hello\n", "is text"),
        (b"GIF89a\x01\x00", "GIF"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "WebP"),
        (b"BM\x00\x01\x02", "BMP"),
        (b"\x00\x01\x02\x03", "not known"),
    ];
    let errors = refused(&cases.map(|(bytes, _)| bytes.to_vec()));
    for (error, (_, expected)) in errors.iter().zip(cases) {
        assert!(error.contains(expected) && error.contains("not a JPEG or PNG"), "{error}");
    }
}

/// A PNG of 40 x 30 pixels that do not compress.
fn noise() -> Vec<u8> {
    let pixels: Vec<u8> = (0..3600u32).map(|i| (i * i + i / 9) as u8).collect();
    png(40, 30, ColorType::Rgb, BitDepth::Eight, &pixels, None)
}

#[test]
fn a_cut_image_is_an_error_wherever_it_is_cut() {
    for (name, jpeg, _) in JPEGS {
        let cuts: Vec<Vec<u8>> = (3..jpeg.len()).map(|len| jpeg[..len].to_vec()).collect();
        for error in refused(&cuts) {
            assert!(error.contains("JPEG") || error.contains("so short a file"), "{name}: {error}");
        }
    }
    let png = noise();
    // The last 12 bytes only say that it ends.
    refused(&(8..png.len() - 12).step_by(7).map(|len| png[..len].to_vec()).collect::<Vec<_>>());
}

#[test]
fn a_file_with_more_behind_the_image_is_fine() {
    let jpeg = [JPEGS[0].1, b"trailing bytes of a camera"].concat();
    assert_eq!(decoded(&jpeg).shape, [13, 19, 3]);
}

/// A PNG header alone, of this size.
fn png_header(width: u32, height: u32) -> Vec<u8> {
    let mut chunk = b"IHDR".to_vec();
    chunk.extend(width.to_be_bytes());
    chunk.extend(height.to_be_bytes());
    chunk.extend([8, 2, 0, 0, 0]);
    let mut crc = flate2::Crc::new();
    crc.update(&chunk);
    [&b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"[..], &chunk, &crc.sum().to_be_bytes()].concat()
}

/// A JPEG whose header says another size.
fn jpeg_of(width: u16, height: u16) -> Vec<u8> {
    let mut jpeg = JPEGS[0].1.to_vec();
    let frame = jpeg.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..][..2].copy_from_slice(&height.to_be_bytes());
    jpeg[frame + 7..][..2].copy_from_slice(&width.to_be_bytes());
    jpeg
}

#[test]
fn a_small_file_can_not_claim_the_memory() {
    let too_large = [
        png_header(100_000, 1),
        png_header(20_000, 10_000),
        png_header(u32::MAX >> 1, u32::MAX >> 1),
        jpeg_of(65_535, 65_535),
        jpeg_of(20_000, 10_000),
        png_header(0, 1),
        jpeg_of(0, 1),
    ];
    let errors = refused(&too_large);
    for error in &errors[..5] {
        assert!(error.contains("the header says") && error.contains("512 MiB"), "{error}");
    }
    for error in refused(&[png_header(400, 100), jpeg_of(1000, 1000)]) {
        assert!(error.contains("more than so short a file can hold"), "{error}");
    }
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let mut state = 1u64;
    let mut random = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut files = Vec::new();
    for good in JPEGS.map(|(_, jpeg, _)| jpeg.to_vec()).into_iter().chain([noise()]) {
        for _ in 0..300 {
            let mut bad = good.clone();
            for _ in 0..=random() % 4 {
                let at = 3 + random() % (bad.len() - 3);
                bad[at] = random() as u8;
            }
            files.push(bad);
        }
    }
    // Some damage shows nowhere, or in pixels only.
    for error in decode_all(&files).into_iter().filter_map(Result::err) {
        assert!(error.is_format() && !error.is_panic(), "{error}");
    }
}

#[test]
fn a_png_whose_checksum_is_wrong_is_an_error() {
    let mut bad = png(1, 1, ColorType::Rgb, BitDepth::Eight, &[1, 2, 3], None);
    let data = bad.windows(4).position(|four| four == b"IDAT").unwrap();
    bad[data + 6] ^= 1;
    assert!(refused(&[bad])[0].contains("PNG"));
}
