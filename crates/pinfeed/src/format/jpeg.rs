//! JPEG, with zune-jpeg, straight into the row.

use std::cell::Cell;

use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::{ZByteIoError, ZByteReaderTrait, ZCursor, ZSeekFrom};
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::decode::{Size, bad};
use crate::error::{Error, Result};
use crate::sample::Row;

const END_OF_IMAGE: [u8; 2] = [0xff, 0xd9];

/// A block of 8 x 8 pixels takes at least a bit. Twice that, for odd ways of
/// subsampling.
const MOST_PIXELS_PER_BYTE: usize = 2 * 8 * 64;

/// Decodes to RGB: grey is repeated, CMYK and YCCK are converted, the
/// orientation that EXIF may ask for is left alone, as by Pillow.
pub(super) fn decode(bytes: &[u8], row: &mut Row<'_>) -> Result<()> {
    let end = Cell::new(0);
    // Our own limits are checked below, with our own message.
    let limit = 1 << 16;
    let options = DecoderOptions::default()
        .jpeg_set_out_colorspace(ColorSpace::RGB)
        .set_max_width(limit)
        .set_max_height(limit);
    let mut decoder = JpegDecoder::new_with_options(Watched::new(bytes, &end), options);
    decoder.decode_headers().map_err(damaged)?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    if let Some(ColorSpace::MultiBand(bands)) = decoder.input_colorspace() {
        return Err(bad(format!("has {bands} channels, and no rule how to make RGB of them"))
            .with_hint("convert it to RGB or grey"));
    }
    let size = Size { width, height };
    size.check(3, bytes.len().saturating_mul(MOST_PIXELS_PER_BYTE))?;
    let out = size.reserve(row)?;
    // Only now: strict about the headers, it refuses images that all others
    // read. Not strict about the pixels, it would paint what is missing grey.
    let strict = decoder.options().set_strict_mode(true);
    decoder.set_options(strict);
    decoder.decode_into(out).map_err(damaged)?;
    drop(decoder);
    if is_end(bytes, end.get()) { Ok(()) } else { Err(cut()) }
}

/// Did the decoder stop at the end-of-image mark? It takes some files that
/// are cut within their last rows for whole.
fn is_end(bytes: &[u8], at: usize) -> bool {
    let Some((read, rest)) = bytes.split_at_checked(at) else { return false };
    // Or just before it, at a restart mark that nothing follows.
    read.ends_with(&END_OF_IMAGE) || rest.starts_with(&END_OF_IMAGE)
}

#[cold]
fn cut() -> Error {
    bad("the JPEG data ends before the image does: the file is cut or damaged")
}

#[cold]
fn damaged(error: DecodeErrors) -> Error {
    let at_end = match &error {
        DecodeErrors::ExhaustedData => true,
        DecodeErrors::IoErrors(e) => e.is_recoverable_eof(),
        _ => false,
    };
    let error_of_ours =
        if at_end { cut() } else { bad(format!("can not be decoded as JPEG: {error}")) };
    error_of_ours.with_source(error)
}

/// A cursor that tells, when the decoder drops it, how far it was read: the
/// decoder has no way to ask.
struct Watched<'a> {
    cursor: ZCursor<&'a [u8]>,
    end: &'a Cell<usize>,
}

impl<'a> Watched<'a> {
    fn new(bytes: &'a [u8], end: &'a Cell<usize>) -> Self {
        Watched { cursor: ZCursor::new(bytes), end }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.end.set(self.cursor.z_position().map_or(usize::MAX, |at| at as usize));
    }
}

macro_rules! forward {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {$(
        #[inline(always)]
        fn $name(&mut self, $($arg: $ty),*) -> $out {
            self.cursor.$name($($arg),*)
        }
    )*};
}

impl ZByteReaderTrait for Watched<'_> {
    forward! {
        read_byte_no_error() -> u8;
        read_exact_bytes(into: &mut [u8]) -> Result<(), ZByteIoError>;
        read_bytes(into: &mut [u8]) -> Result<usize, ZByteIoError>;
        peek_bytes(into: &mut [u8]) -> Result<usize, ZByteIoError>;
        peek_exact_bytes(into: &mut [u8]) -> Result<(), ZByteIoError>;
        z_seek(to: ZSeekFrom) -> Result<u64, ZByteIoError>;
        is_eof() -> Result<bool, ZByteIoError>;
        z_position() -> Result<u64, ZByteIoError>;
        read_remaining(into: &mut Vec<u8>) -> Result<usize, ZByteIoError>;
    }
}
