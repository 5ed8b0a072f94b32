//! PNG, with the png crate.

use std::io::Cursor;

use png::{ColorType, DecodingError, Transformations};

use super::decode::{Size, bad};
use crate::dataset::Context;
use crate::error::{Error, Result};
use crate::sample::Row;

/// Deflate makes at most this many bytes of one.
const MOST_BYTES_PER_BYTE: usize = 1032;

/// Decodes to RGB of 8 bits: palettes are looked up, grey is repeated, of 16
/// bits the upper 8 stay, alpha is dropped (not blended), as by Pillow. Of an
/// animation, the first image.
pub(super) fn decode(bytes: &[u8], row: &mut Row<'_>, cx: &mut Context) -> Result<()> {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    // Not used, and a way to make a small file large.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let header = decoder.read_header_info().map_err(damaged)?;
    let size = Size { width: header.width as usize, height: header.height as usize };
    let most_bits = bytes.len().saturating_mul(8 * MOST_BYTES_PER_BYTE);
    let most_pixels = most_bits / header.bits_per_pixel();
    size.check(3, most_pixels)?;
    let mut reader = decoder.read_info().map_err(damaged)?;

    let (color, _) = reader.output_color_type();
    if color == ColorType::Rgb {
        // The layout of the row: no step between.
        reader.next_frame(size.reserve(row)?).map_err(damaged)?;
        return Ok(());
    }
    size.check(color.samples(), most_pixels)?;
    let mut scratch = cx.take_buffer();
    scratch.resize(size.width * size.height * color.samples(), 0);
    let result = reader.next_frame(&mut scratch).map_err(damaged).and_then(|_| {
        let out = size.reserve(row)?;
        match color {
            ColorType::Grayscale => spread::<1>(&scratch, out, |[grey]| [grey; 3]),
            ColorType::GrayscaleAlpha => spread::<2>(&scratch, out, |[grey, _]| [grey; 3]),
            ColorType::Rgba => {
                spread::<4>(&scratch, out, |[red, green, blue, _]| [red, green, blue])
            }
            ColorType::Rgb | ColorType::Indexed => {
                return Err(bad("its palette could not be looked up"));
            }
        }
        Ok(())
    });
    cx.give_buffer(scratch);
    result
}

fn spread<const N: usize>(from: &[u8], to: &mut [u8], rgb: impl Fn([u8; N]) -> [u8; 3]) {
    let (from, _) = from.as_chunks::<N>();
    let (to, _) = to.as_chunks_mut::<3>();
    for (to, from) in to.iter_mut().zip(from) {
        *to = rgb(*from);
    }
}

#[cold]
fn damaged(error: DecodingError) -> Error {
    let cut = matches!(&error, DecodingError::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof);
    let error_of_ours = if cut {
        bad("the PNG data ends before the image does: the file is cut or damaged")
    } else {
        bad(format!("can not be decoded as PNG: {error}"))
    };
    error_of_ours.with_source(error)
}
