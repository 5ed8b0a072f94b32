//! From a file's bytes to pixels in the row.
//!
//! The content decides, not the name: a PNG called `.jpg` is decoded as PNG.
//! Errors here have no path; who has it adds it.

use super::{jpeg, png};
use crate::dataset::Context;
use crate::error::{Error, Kind, Result};
use crate::sample::Row;

/// The longest side of an image, in pixels: JPEG's own limit.
pub(super) const MAX_SIDE: usize = 65_535;

/// The most bytes that the pixels of one image may take. Pillow refuses images
/// from the same size on.
pub(super) const MAX_BYTES: usize = 512 << 20;

/// Writes the image to `row`, as the field `image`: u8 `[height, width, 3]`.
pub(super) fn decode(bytes: &[u8], row: &mut Row<'_>, cx: &mut Context) -> Result<()> {
    match bytes {
        [0xff, 0xd8, 0xff, ..] => jpeg::decode(bytes, row),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => png::decode(bytes, row, cx),
        _ => Err(not_an_image(bytes)),
    }
}

/// The pixels of an image, by its header: a claim until it is decoded.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Size {
    /// Refuses what is not to be believed: no pixels, more than the limits
    /// allow, more than a file so long can hold (`most_pixels`). A small file
    /// can claim any size, and memory would be taken for it.
    pub(super) fn check(self, bytes_per_pixel: usize, most_pixels: usize) -> Result<()> {
        let Size { width, height } = self;
        let pixels = width.saturating_mul(height);
        let bytes = pixels.saturating_mul(bytes_per_pixel);
        if width.max(height) > MAX_SIDE || bytes > MAX_BYTES || bytes == 0 {
            return Err(bad(format!("the header says {width} x {height} pixels")).with_hint(
                format!(
                    "images of at most {MAX_SIDE} pixels on a side and {} MiB in all are read",
                    MAX_BYTES >> 20
                ),
            ));
        }
        if pixels > most_pixels {
            return Err(bad(format!(
                "the header says {width} x {height} pixels, more than so short a file can hold: it \
                 is cut or damaged"
            )));
        }
        Ok(())
    }

    /// Reserves the pixels in `row`. Checked before.
    pub(super) fn reserve<'a>(self, row: &'a mut Row<'_>) -> Result<&'a mut [u8]> {
        row.named("image").tensor::<u8>(&[self.height, self.width, 3])
    }
}

/// An error of the file's content.
#[cold]
pub(super) fn bad(message: impl Into<String>) -> Error {
    Error::new(Kind::Format, message)
}

#[cold]
fn not_an_image(bytes: &[u8]) -> Error {
    let is = match bytes {
        [] => "is empty (0 bytes)",
        [b'G', b'I', b'F', b'8', ..] => "is a GIF image",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "is a WebP image",
        [b'B', b'M', ..] => "is a BMP image",
        [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => "is a TIFF image",
        text if text.iter().all(|b| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~')) => "is text",
        _ => "is of a kind not known here",
    };
    bad(format!("{is}, not a JPEG or PNG image"))
        .with_hint("convert it, or leave it out of the folder")
}
