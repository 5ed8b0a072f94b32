//! Made-up data, the same on every machine.

use super::context::mix;
use super::{Context, Dataset, TensorDataset};
use crate::error::{BoxError, Error, Kind, Result};
use crate::sample::{Row, Rows, SampleRef, Spec};
use crate::tensor::{DType, Tensor};

/// Made-up images with labels, in memory: noise, for benchmarks, examples and
/// tests that need no file.
///
/// Sample `i` is an image, u8 `[height, width, channels]`, and a label, i64,
/// which is `i % classes`. An image is a function of the seed and its index
/// alone.
///
/// ```
/// use pinfeed::{Dataset, Synthetic};
///
/// // The shape of CIFAR-10, smaller.
/// let dataset = Synthetic::images(1000, [32, 32, 3], 10, 0)?;
/// assert_eq!(dataset.len(), 1000);
/// assert_eq!(dataset.labels()[..3], [0, 1, 2]);
/// # Ok::<(), pinfeed::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// The images, then the labels. Their fields have no names, as those of
    /// any [`TensorDataset`].
    data: TensorDataset,
    labels: Tensor,
    classes: usize,
}

impl Synthetic {
    /// `len` images of `shape` (height, width, channels) in `classes` classes.
    ///
    /// # Errors
    /// If there are no classes, or no memory for so many images.
    pub fn images(len: usize, shape: [usize; 3], classes: usize, seed: u64) -> Result<Self> {
        if classes == 0 {
            return Err(Error::config("Synthetic: at least one class is needed"));
        }
        let [h, w, c] = shape;
        let shape = [len, h, w, c];
        let bytes = DType::U8.bytes_of(&shape).ok_or_else(|| too_large(shape))?;
        let mut pixels: Vec<u8> = Vec::new();
        pixels.try_reserve_exact(bytes).map_err(|e| too_large(shape).with_source(e))?;
        pixels.resize(bytes, 0);
        if bytes > 0 {
            for (index, image) in pixels.chunks_exact_mut(bytes / len).enumerate() {
                noise(image, seed, index);
            }
        }
        let labels: Vec<i64> = (0..classes as i64).cycle().take(len).collect();
        let labels = Tensor::from_vec(labels, &[len])?;
        let data = TensorDataset::new([Tensor::from_vec(pixels, &shape)?, labels.clone()])?;
        Ok(Synthetic { data, labels, classes })
    }

    /// The number of classes: labels are below it.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The label of each sample.
    pub fn labels(&self) -> &[i64] {
        // Made of i64 above.
        self.labels.as_slice().unwrap_or_default()
    }
}

/// Fills an image with SplitMix64 (Steele, Lea, Flood 2014): a counter and a
/// mixer, so that the compiler can work on several words at a time.
fn noise(image: &mut [u8], seed: u64, index: usize) {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let start = mix(seed ^ mix((index as u64).wrapping_mul(STEP)));
    let word = |i: usize| mix(start.wrapping_add((i as u64 + 1).wrapping_mul(STEP))).to_le_bytes();
    let (words, rest) = image.as_chunks_mut::<8>();
    let whole = words.len();
    for (i, out) in words.iter_mut().enumerate() {
        *out = word(i);
    }
    let len = rest.len();
    rest.copy_from_slice(&word(whole)[..len]);
}

#[cold]
fn too_large(shape: [usize; 4]) -> Error {
    Error::new(Kind::Memory, format!("Synthetic: no memory for u8 images of shape {shape:?}"))
        .with_hint("ask for fewer or smaller images: they are all held in memory")
}

impl Dataset for Synthetic {
    fn len(&self) -> usize {
        self.data.len()
    }

    fn get(&self, index: usize, row: &mut Row<'_>, cx: &mut Context) -> Result<(), BoxError> {
        self.data.get(index, row, cx)
    }

    fn get_many(
        &self,
        indices: &[usize],
        rows: &mut Rows<'_>,
        cx: &mut Context,
    ) -> Result<(), BoxError> {
        self.data.get_many(indices, rows, cx)
    }

    fn spec(&self) -> Option<Spec> {
        self.data.spec()
    }

    fn lend(&self, index: usize) -> Option<SampleRef<'_>> {
        self.data.lend(index)
    }
}
