//! Tensors in host memory: a dtype, a shape, and bytes that are shared.

#[cfg(feature = "ndarray")]
mod array;
mod cells;
mod display;
mod dtype;
mod equal;
mod make;
mod pin;
mod read;
mod storage;
mod view;

use crate::sample::Shape;
use storage::Storage;

pub use dtype::{DType, Element};

/// A dense tensor in host memory, in row-major order (the last dimension's
/// elements lie side by side).
///
/// Clones, [`get`](Tensor::get), [`narrow`](Tensor::narrow) and
/// [`reshape`](Tensor::reshape) share the memory; nobody writes it any more.
/// The memory is a batch's slot, or whatever the tensor was made from.
///
/// ```
/// use pinfeed::{DType, Tensor};
///
/// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
/// assert_eq!(x.dtype(), DType::F32);
/// assert_eq!(x.shape(), [2, 3]);
/// assert_eq!(x.get(1)?.as_slice::<f32>()?, [4.0, 5.0, 6.0]);
/// assert!(!x.is_pinned());
/// # Ok::<(), pinfeed::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    storage: Storage,
    /// Where the first element lies in the storage, in bytes: a multiple of
    /// the element's size.
    offset: usize,
    /// Bytes of all elements: what `dtype` and `shape` make, kept because it
    /// is asked for at every access.
    bytes: usize,
    dtype: DType,
    shape: Shape,
}

impl Tensor {
    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The size of each dimension. A scalar has none.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of dimensions, 0 for a scalar. PyTorch's `dim()` and `ndim`.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements: 1 for a scalar, 0 if a dimension is 0.
    pub fn numel(&self) -> usize {
        self.bytes / self.dtype.size()
    }

    /// Bytes of all elements.
    pub fn nbytes(&self) -> usize {
        self.bytes
    }

    /// The elements as bytes, in row-major order and the machine's byte order,
    /// aligned for the dtype.
    pub fn bytes(&self) -> &[u8] {
        &self.storage.bytes()[self.offset..][..self.bytes]
    }

    /// The bytes of row `index`: of all elements with that index in dimension
    /// 0. The caller has checked that there is such a row.
    pub(crate) fn row_bytes(&self, index: usize) -> &[u8] {
        let bytes = self.bytes / self.shape[0];
        &self.bytes()[index * bytes..][..bytes]
    }
}
