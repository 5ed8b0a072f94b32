//! Making tensors: from vectors, from one value, from a slot.

use pinfeed_mem::{Pageable, Slot, SlotMut};
use smallvec::smallvec;

use super::{DType, Element, Storage, Tensor};
use crate::error::{Error, Result};
use crate::sample::{Shape, too_large};

/// Bytes of a tensor of this shape.
pub(super) fn bytes_of(dtype: DType, shape: &[usize]) -> Result<usize> {
    dtype.bytes_of(shape).ok_or_else(|| too_large(dtype, shape))
}

impl Tensor {
    /// A tensor of the values in `values`, in row-major order. They are not
    /// copied.
    ///
    /// ```
    /// let x = pinfeed::Tensor::from_vec(vec![1i64, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.shape(), [2, 3]);
    ///
    /// let error = pinfeed::Tensor::from_vec(vec![1i64, 2], &[2, 3]).unwrap_err();
    /// assert!(error.to_string().contains("2 values of i64"));
    /// # Ok::<(), pinfeed::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shape has not as many elements as there are values.
    pub fn from_vec<T: Element>(values: Vec<T>, shape: &[usize]) -> Result<Self> {
        let bytes = bytes_of(T::DTYPE, shape)?;
        let needed = bytes / T::DTYPE.size();
        if values.len() != needed {
            return Err(Error::tensor(format!(
                "{} values of {} given for a tensor of shape {shape:?}, which has {needed}",
                values.len(),
                T::DTYPE
            )));
        }
        Ok(Self::owned(values, 0, bytes, shape.into()))
    }

    /// A tensor of `bytes` bytes of `values`, from the value `first` on. The
    /// caller has checked that they are there, and that the shape has as many.
    pub(super) fn owned<T: Element>(
        values: Vec<T>,
        first: usize,
        bytes: usize,
        shape: Shape,
    ) -> Self {
        let offset = first * T::DTYPE.size();
        Tensor { storage: Storage::owned(values), offset, bytes, dtype: T::DTYPE, shape }
    }

    /// A tensor without dimensions, of one value.
    pub fn scalar<T: Element>(value: T) -> Self {
        Self::owned(vec![value], 0, T::DTYPE.size(), Shape::new())
    }

    /// A tensor of zeros (`false` for bool).
    ///
    /// ```
    /// use pinfeed::{DType, Tensor};
    ///
    /// let boxes = Tensor::zeros(DType::F32, &[0, 4])?;
    /// assert_eq!(boxes.numel(), 0);
    /// # Ok::<(), pinfeed::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shape makes more bytes than an object may have (`isize::MAX`),
    /// or there is no memory of that size.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Self> {
        let slot = SlotMut::alone(&Pageable, bytes_of(dtype, shape)?)?.seal();
        Ok(Self::from_slot(slot, 0, dtype, shape.into()))
    }

    /// A tensor of this shape with every element `value`.
    ///
    /// ```
    /// let x = pinfeed::Tensor::full(&[2, 2], 7u8)?;
    /// assert_eq!(x.as_slice::<u8>()?, [7, 7, 7, 7]);
    /// # Ok::<(), pinfeed::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`zeros`](Tensor::zeros).
    pub fn full<T: Element>(shape: &[usize], value: T) -> Result<Self> {
        let mut slot = SlotMut::alone(&Pageable, bytes_of(T::DTYPE, shape)?)?;
        let value = bytemuck::bytes_of(&value);
        for element in slot.as_mut_slice().chunks_exact_mut(value.len()) {
            element.copy_from_slice(value);
        }
        Ok(Self::from_slot(slot.seal(), 0, T::DTYPE, shape.into()))
    }

    /// A tensor that lies in `slot` from byte `offset` on.
    ///
    /// The caller sees to it that the offset is a multiple of the element's
    /// size, that the slot is long enough, and that a bool's bytes are 0 or 1.
    pub(crate) fn from_slot(slot: Slot, offset: usize, dtype: DType, shape: Shape) -> Self {
        let bytes = dtype.bytes_of(&shape).unwrap_or(usize::MAX);
        debug_assert!(offset.is_multiple_of(dtype.size()), "{offset} for {dtype}");
        debug_assert!(
            bytes <= slot.len().saturating_sub(offset),
            "{bytes} at {offset} of {slot:?}"
        );
        Tensor { storage: Storage::Slot(slot), offset, bytes, dtype, shape }
    }
}

/// One dimension; the values are not copied.
impl<T: Element> From<Vec<T>> for Tensor {
    fn from(values: Vec<T>) -> Self {
        let len = values.len();
        Self::owned(values, 0, len * T::DTYPE.size(), smallvec![len])
    }
}
