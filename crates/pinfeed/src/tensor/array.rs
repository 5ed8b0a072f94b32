//! `ndarray` arrays: views of tensors, tensors from arrays, arrays as samples.
//!
//! An array may be transposed, reversed, strided or broadcast; a tensor is
//! dense. Elements go over in the array's logical order, whatever the order
//! they lie in.

use ndarray::{ArrayBase, ArrayView, ArrayViewD, ArrayViewMut, Data, Dimension, IxDyn};

use super::make::bytes_of;
use super::{Element, Tensor};
use crate::error::{Error, Kind, Result};
use crate::sample::{Row, Sample, Shape};

impl Tensor {
    /// The tensor as an `ndarray` view, without a copy.
    ///
    /// ```
    /// let x = pinfeed::Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    /// let view = x.view::<f32>()?;
    /// assert_eq!(view[[1, 0]], 4.0);
    /// assert_eq!(view.sum(), 21.0);
    /// # Ok::<(), pinfeed::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`as_slice`](Tensor::as_slice); also if the dimensions that are not
    /// 0 multiply to more than `isize::MAX`, which `ndarray` does not take.
    pub fn view<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        ArrayView::from_shape(IxDyn(self.shape()), self.as_slice()?).map_err(|e| {
            Error::tensor(format!("ndarray can not view a tensor of shape {:?}", self.shape()))
                .with_source(e)
        })
    }

    /// A tensor with the array's shape and values.
    ///
    /// An owned array in standard layout (row-major, dense) is not copied: its
    /// vector is kept. Any other is copied once, into standard layout.
    ///
    /// ```
    /// use ndarray::array;
    /// use pinfeed::Tensor;
    ///
    /// let a = array![[0.0f32, 1.0, 2.0], [3.0, 4.0, 5.0]];
    /// let transposed = Tensor::from_array(a.reversed_axes())?;
    /// assert_eq!(transposed.shape(), [3, 2]);
    /// assert_eq!(transposed.as_slice::<f32>()?, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    /// # Ok::<(), pinfeed::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a copy is needed and there is no memory for it (a broadcast array
    /// can be far larger than what it is made from).
    pub fn from_array<T, S, D>(array: ArrayBase<S, D>) -> Result<Self>
    where
        T: Element,
        S: Data<Elem = T>,
        D: Dimension,
    {
        let shape = Shape::from(array.shape());
        let bytes = bytes_of(T::DTYPE, &shape)?;
        if array.is_standard_layout() {
            // Copies only what is borrowed, and as it lies.
            let (values, first) = array.into_owned().into_raw_vec_and_offset();
            return Ok(Self::owned(values, first.unwrap_or(0), bytes, shape));
        }
        let mut values = Vec::new();
        values.try_reserve_exact(array.len()).map_err(|e| {
            Error::new(Kind::Memory, format!("no memory to copy an array of shape {shape:?}"))
                .with_source(e)
        })?;
        values.resize(array.len(), T::default());
        copy_in_order(array.view(), &mut values)?;
        Ok(Self::owned(values, 0, bytes, shape))
    }
}

/// Copies the elements to `out`, in logical order.
fn copy_in_order<T: Element, D: Dimension>(
    array: ArrayView<'_, T, D>,
    out: &mut [T],
) -> Result<()> {
    if let Some(values) = array.as_slice()
        && values.len() == out.len()
    {
        out.copy_from_slice(values);
        return Ok(());
    }
    // Faster than the array's iterator: `assign` picks the order of its loops
    // by the strides.
    ArrayViewMut::from_shape(array.raw_dim(), out)
        .map_err(|e| {
            Error::tensor(format!("an array of shape {:?}", array.shape())).with_source(e)
        })?
        .assign(&array);
    Ok(())
}

/// One tensor field, written in the array's logical order.
impl<T, S, D> Sample for ArrayBase<S, D>
where
    T: Element,
    S: Data<Elem = T>,
    D: Dimension,
{
    fn write(&self, row: &mut Row<'_>) -> Result<()> {
        copy_in_order(self.view(), row.tensor(self.shape())?)
    }
}
