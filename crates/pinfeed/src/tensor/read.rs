//! Reading elements with their type.

use super::{Element, Tensor};
use crate::error::{Error, Result};

impl Tensor {
    /// The elements in row-major order, where they lie.
    ///
    /// ```
    /// let x = pinfeed::Tensor::from(vec![1i64, 2]);
    /// assert_eq!(x.as_slice::<i64>()?, [1, 2]);
    ///
    /// let error = x.as_slice::<f32>().unwrap_err();
    /// assert!(error.to_string().contains("asked for f32 of a tensor of i64"));
    /// # Ok::<(), pinfeed::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the dtype is not that of `T`, or a bool's byte is neither 0 nor 1.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        if self.dtype != T::DTYPE {
            return Err(Error::tensor(format!(
                "asked for {} of a tensor of {} {:?}",
                T::DTYPE,
                self.dtype,
                self.shape()
            ))
            .with_hint(format!("ask for {0}: `as_slice::<{0}>()`, `item::<{0}>()`", self.dtype)));
        }
        bytemuck::checked::try_cast_slice(self.bytes())
            .map_err(|e| Error::tensor(format!("bytes that are no {}: {e:?}", T::DTYPE)))
    }

    /// The elements in row-major order, copied.
    ///
    /// # Errors
    /// As [`as_slice`](Tensor::as_slice).
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Ok(self.as_slice()?.to_vec())
    }

    /// The element of a tensor that has just one, whatever its shape.
    ///
    /// ```
    /// assert_eq!(pinfeed::Tensor::scalar(2.5f64).item::<f64>()?, 2.5);
    /// assert!(pinfeed::Tensor::from(vec![1u8, 2]).item::<u8>().is_err());
    /// # Ok::<(), pinfeed::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is not just one element, or as [`as_slice`](Tensor::as_slice).
    pub fn item<T: Element>(&self) -> Result<T> {
        match self.as_slice::<T>()? {
            [value] => Ok(*value),
            values => Err(Error::tensor(format!(
                "item() of a tensor of shape {:?}, which has {} elements",
                self.shape(),
                values.len()
            ))
            .with_hint("item() is for one element; take get(i) first, or as_slice()")),
        }
    }
}
