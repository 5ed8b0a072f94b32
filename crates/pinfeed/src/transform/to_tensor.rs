//! From pixels (u8, channels last) to floats (channels first).

use std::sync::Arc;

use super::{Normalize, first, is, name_like, spec_with_first, write_rest};
use crate::dataset::{Context, Transform};
use crate::error::{BoxError, Error, Result};
use crate::sample::{Row, SampleRef, Spec};
use crate::tensor::DType;

/// What each of the 256 pixel values becomes.
type Table = [f32; 256];

/// Makes floats of an image: u8 `[height, width, channels]` to f32
/// `[channels, height, width]`, each value `v / 255`, as torchvision's
/// `ToTensor`. With [`normalize`](ToTensor::normalize) it does what
/// torchvision's `Normalize` does behind it, in the same pass, to the same bit.
///
/// It works on the sample's first field and passes the others on. An image of
/// two dimensions has one channel.
///
/// ```
/// use pinfeed::{Dataset, Synthetic, ToTensor};
///
/// let images = Synthetic::images(100, [32, 32, 3], 10, 0)?;
/// let mean = [0.4914, 0.4822, 0.4465];
/// let std = [0.2470, 0.2435, 0.2616];
/// let dataset = images.map(ToTensor::new().normalize(&mean, &std)?);
/// let spec = dataset.spec().unwrap();
/// assert_eq!(format!("{spec:?}"), "[f32 [3, 32, 32], i64]");
/// # Ok::<(), pinfeed::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ToTensor {
    /// A table a channel, or one for all. There are only 256 values, so the
    /// divisions are done once; that the table is exact needs no proof.
    tables: Arc<[Table]>,
    normalize: Option<Normalize>,
}

impl ToTensor {
    /// Without normalisation: 0 to 255 become 0 to 1.
    pub fn new() -> Self {
        ToTensor { tables: Arc::new([table(|v| v)]), normalize: None }
    }

    /// Then `(v - mean) / std` for each channel. One mean and one standard
    /// deviation a channel, or one for all channels.
    ///
    /// # Errors
    /// As [`Normalize::new`]; if it normalises already.
    pub fn normalize(self, mean: &[f32], std: &[f32]) -> Result<Self> {
        if self.normalize.is_some() {
            return Err(Error::config("ToTensor: normalize is given twice"));
        }
        let normalize = Normalize::new(mean, std)?;
        let tables = (0..normalize.len()).map(|c| table(|v| normalize.value(c, v))).collect();
        Ok(ToTensor { tables, normalize: Some(normalize) })
    }

    /// Converts an image of `channels` interleaved channels from `src` to
    /// planes in `dst`: what the transform does, without the loader.
    ///
    /// # Errors
    /// If `src` and `dst` differ in length, that is not a multiple of
    /// `channels`, or the normalisation is for another number of channels.
    #[inline]
    pub fn convert(&self, src: &[u8], channels: usize, dst: &mut [f32]) -> Result<()> {
        if src.len() != dst.len() || channels == 0 || !src.len().is_multiple_of(channels) {
            return Err(Error::tensor(format!(
                "ToTensor: {} values of {channels} channels do not go to {} places",
                src.len(),
                dst.len()
            )));
        }
        if let Some(normalize) = &self.normalize {
            normalize.check(channels)?;
        }
        match (channels, &*self.tables) {
            (1, [table, ..]) => grey(src, table, dst),
            (3, [red, green, blue]) => rgb(src, [red, green, blue], dst),
            (3, [table, ..]) => rgb(src, [table; 3], dst),
            (_, tables) => any(src, channels, tables, dst),
        }
        Ok(())
    }
}

impl Default for ToTensor {
    fn default() -> Self {
        Self::new()
    }
}

/// `f(v / 255)` for each v, in f32 like PyTorch: a division, because
/// `v * (1 / 255)` differs in the last bit.
fn table(f: impl Fn(f32) -> f32) -> Table {
    std::array::from_fn(|v| f(v as f32 / 255.0))
}

fn grey(src: &[u8], table: &Table, dst: &mut [f32]) {
    for (dst, &v) in dst.iter_mut().zip(src) {
        *dst = table[usize::from(v)];
    }
}

/// The hot loop: one pass over the pixels, three streams of floats out.
fn rgb(src: &[u8], [red, green, blue]: [&Table; 3], dst: &mut [f32]) {
    let (pixels, _) = src.as_chunks::<3>();
    let (r, rest) = dst.split_at_mut(pixels.len());
    let (g, b) = rest.split_at_mut(pixels.len());
    for (((pixel, r), g), b) in pixels.iter().zip(r).zip(g).zip(b) {
        *r = red[usize::from(pixel[0])];
        *g = green[usize::from(pixel[1])];
        *b = blue[usize::from(pixel[2])];
    }
}

fn any(src: &[u8], channels: usize, tables: &[Table], dst: &mut [f32]) {
    let plane = src.len() / channels;
    if plane == 0 {
        return;
    }
    for (channel, dst) in dst.chunks_exact_mut(plane).enumerate() {
        // One table for all, or one each.
        let table = &tables[channel % tables.len()];
        for (dst, pixel) in dst.iter_mut().zip(src.chunks_exact(channels)) {
            *dst = table[usize::from(pixel[channel])];
        }
    }
}

impl Transform for ToTensor {
    fn apply(
        &self,
        sample: SampleRef<'_>,
        row: &mut Row<'_>,
        _: &mut Context,
    ) -> Result<(), BoxError> {
        let field = first(sample, "ToTensor")?;
        let (Some(DType::U8), Some([c, h, w])) = (field.dtype(), planes(field.shape())) else {
            return Err(Error::tensor(format!(
                "ToTensor: the first field is {}, u8 [height, width, channels] or u8 [height, width] \
                 is needed",
                is(field)
            ))
            .with_hint("put the image first; floats need no ToTensor")
            .into());
        };
        name_like(field, row);
        self.convert(field.bytes(), c, row.tensor(&[c, h, w])?)?;
        write_rest(sample, row)
    }

    fn spec(&self, spec: &Spec) -> Option<Spec> {
        spec_with_first(spec, DType::F32, |dtype, shape| {
            let shape @ [channels, ..] = planes(shape)?;
            let fits = self.normalize.as_ref().is_none_or(|n| n.check(channels).is_ok());
            (dtype == DType::U8 && fits).then_some(shape)
        })
    }
}

/// The shape with channels first; `None` if it is no image's.
fn planes(shape: &[usize]) -> Option<[usize; 3]> {
    match *shape {
        [h, w, c] if c > 0 => Some([c, h, w]),
        [h, w] => Some([1, h, w]),
        _ => None,
    }
}
