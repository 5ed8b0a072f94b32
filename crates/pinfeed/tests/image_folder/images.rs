//! Decoding: every kind of image comes out as RGB, by its content.

use png::{BitDepth, ColorType};

use super::make::{Sample, directory, get, open, png};

/// Decodes one image under some name.
fn decoded(name: &str, bytes: &[u8]) -> Result<Sample, pinfeed::Error> {
    let root = directory(&[(name, bytes.to_vec())]);
    get(&open(root.path()), 0)
}

fn png_pixels(name: &str, bytes: &[u8]) -> Vec<u8> {
    decoded(name, bytes).unwrap().pixels
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
        let Sample { shape, pixels, .. } = decoded("a/x.jpg", jpeg).unwrap();
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
    assert_eq!(decoded("a/x.png", &rgb).unwrap().shape, [1, 2, 3]);
    assert_eq!(png_pixels("a/x.png", &rgb), [1, 2, 3, 4, 5, 6]);

    let rgba = png(1, 2, ColorType::Rgba, BitDepth::Eight, &[1, 2, 3, 0, 4, 5, 6, 255], None);
    assert_eq!(decoded("a/x.png", &rgba).unwrap().shape, [2, 1, 3]);
    assert_eq!(png_pixels("a/x.png", &rgba), [1, 2, 3, 4, 5, 6]);

    let grey = png(2, 1, ColorType::Grayscale, BitDepth::Eight, &[7, 9], None);
    assert_eq!(png_pixels("a/x.png", &grey), [7, 7, 7, 9, 9, 9]);

    let grey_alpha = png(2, 1, ColorType::GrayscaleAlpha, BitDepth::Eight, &[7, 0, 9, 1], None);
    assert_eq!(png_pixels("a/x.png", &grey_alpha), [7, 7, 7, 9, 9, 9]);

    // Of 16 bits, the upper 8.
    let deep = png(2, 1, ColorType::Grayscale, BitDepth::Sixteen, &[7, 255, 200, 1], None);
    assert_eq!(png_pixels("a/x.png", &deep), [7, 7, 7, 200, 200, 200]);
    let deep = png(1, 1, ColorType::Rgb, BitDepth::Sixteen, &[1, 255, 2, 0, 3, 128], None);
    assert_eq!(png_pixels("a/x.png", &deep), [1, 2, 3]);

    // One bit: white, black.
    let bits = png(2, 1, ColorType::Grayscale, BitDepth::One, &[0b1000_0000], None);
    assert_eq!(png_pixels("a/x.png", &bits), [255, 255, 255, 0, 0, 0]);

    // A palette, one of whose colours is transparent.
    let palette: (&[u8], &[u8]) = (&[10, 20, 30, 40, 50, 60], &[255, 0]);
    let indexed = png(3, 1, ColorType::Indexed, BitDepth::Eight, &[1, 0, 1], Some(palette));
    assert_eq!(png_pixels("a/x.png", &indexed), [40, 50, 60, 10, 20, 30, 40, 50, 60]);
}

#[test]
fn the_content_decides_not_the_name() {
    let png = png(1, 1, ColorType::Rgb, BitDepth::Eight, &[1, 2, 3], None);
    assert_eq!(png_pixels("a/x.jpg", &png), [1, 2, 3]);
    assert_eq!(decoded("a/x.png", JPEGS[0].1).unwrap().shape, [13, 19, 3]);
}

/// The error of a bad image: it must name the file.
fn refused(name: &str, bytes: &[u8]) -> String {
    let error = decoded(name, bytes).unwrap_err();
    assert!(error.is_format() && !error.is_panic(), "{error}");
    assert!(error.path().is_some_and(|path| path.ends_with(name)), "no path in: {error}");
    error.to_string()
}

#[test]
fn what_is_no_image_is_named_for_what_it_is() {
    for (bytes, expected) in [
        (&b""[..], "empty"),
        (b"hello\n", "is text"),
        (b"GIF89a\x01\x00", "GIF"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "WebP"),
        (b"BM\x00\x01\x02", "BMP"),
        (b"\x00\x01\x02\x03", "not known"),
    ] {
        let error = refused("a/x.jpg", bytes);
        assert!(error.contains(expected) && error.contains("not a JPEG or PNG"), "{error}");
    }
}

#[test]
fn a_cut_image_is_an_error_wherever_it_is_cut() {
    for (name, jpeg, _) in JPEGS {
        for len in 3..jpeg.len() {
            let error = refused("a/x.jpg", &jpeg[..len]);
            assert!(error.contains("JPEG"), "{name} cut at {len}: {error}");
        }
    }
    let png = png(
        40,
        30,
        ColorType::Rgb,
        BitDepth::Eight,
        &(0..3600u32).map(|i| (i * i) as u8).collect::<Vec<_>>(),
        None,
    );
    // The last 12 bytes only say that it ends.
    for len in (8..png.len() - 12).step_by(7) {
        refused("a/x.png", &png[..len]);
    }
}

#[test]
fn a_file_with_more_behind_the_image_is_fine() {
    let jpeg = [JPEGS[0].1, b"trailing bytes of a camera"].concat();
    assert_eq!(decoded("a/x.jpg", &jpeg).unwrap().shape, [13, 19, 3]);
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
    for bytes in [
        png_header(100_000, 1),
        png_header(20_000, 10_000),
        png_header(u32::MAX >> 1, u32::MAX >> 1),
        jpeg_of(65_535, 65_535),
        jpeg_of(20_000, 10_000),
    ] {
        let error = refused("a/x.png", &bytes);
        assert!(error.contains("the header says") && error.contains("512 MiB"), "{error}");
    }
    // Not too large, but not true: cut.
    assert!(refused("a/x.jpg", &jpeg_of(500, 400)).contains("JPEG"));
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let noise = (0..3600u32).map(|i| (i * i) as u8).collect::<Vec<_>>();
    let png = png(40, 30, ColorType::Rgb, BitDepth::Eight, &noise, None);
    let mut state = 1u64;
    let mut random = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for (_, good, _) in JPEGS.into_iter().chain([("png", &png[..], &[][..])]) {
        for _ in 0..300 {
            let mut bad = good.to_vec();
            for _ in 0..=random() % 4 {
                let at = 3 + random() % (bad.len() - 3);
                bad[at] = random() as u8;
            }
            // Some damage shows nowhere, in pixels at most.
            if let Err(error) = decoded("a/x.jpg", &bad) {
                assert!(error.is_format() && !error.is_panic(), "{error}");
            }
        }
    }
}

#[test]
fn a_png_whose_checksum_is_wrong_is_an_error() {
    let mut bad = png(1, 1, ColorType::Rgb, BitDepth::Eight, &[1, 2, 3], None);
    let data = bad.windows(4).position(|four| four == b"IDAT").unwrap();
    bad[data + 6] ^= 1;
    assert!(refused("a/x.png", &bad).contains("PNG"));
}
