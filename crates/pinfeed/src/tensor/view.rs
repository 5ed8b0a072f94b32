//! Tensors that share another's memory: a row, some rows, another shape.

use super::Tensor;
use super::make::bytes_of;
use crate::error::{Error, Result};

impl Tensor {
    /// Row `index`: the elements with that index in dimension 0, without that
    /// dimension. Shares the memory.
    ///
    /// # Errors
    /// If there is no such row, or the tensor is a scalar.
    pub fn get(&self, index: usize) -> Result<Tensor> {
        let mut row = self.narrow(index, 1)?;
        row.shape.remove(0);
        Ok(row)
    }

    /// The `len` rows from `start` on. Shares the memory.
    ///
    /// ```
    /// let x = pinfeed::Tensor::from_vec((0..8i32).collect(), &[4, 2])?;
    /// let middle = x.narrow(1, 2)?;
    /// assert_eq!(middle.shape(), [2, 2]);
    /// assert_eq!(middle.as_slice::<i32>()?, [2, 3, 4, 5]);
    /// # Ok::<(), pinfeed::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are not so many rows, or the tensor is a scalar.
    pub fn narrow(&self, start: usize, len: usize) -> Result<Tensor> {
        let Some(&rows) = self.shape.first() else {
            return Err(Error::tensor("a scalar has no rows").with_hint("item() gives its value"));
        };
        if start.checked_add(len).is_none_or(|end| end > rows) {
            let asked = match len {
                1 => format!("row {start}"),
                _ => format!("{len} rows from {start} on"),
            };
            return Err(Error::tensor(format!(
                "{asked} asked of a tensor of shape {:?}, which has {rows} rows",
                self.shape()
            )));
        }
        // With no rows there are no bytes, and only `narrow(0, 0)` is left.
        let row_bytes = self.bytes.checked_div(rows).unwrap_or(0);
        let mut part = self.clone();
        part.shape[0] = len;
        part.offset += start * row_bytes;
        part.bytes = len * row_bytes;
        Ok(part)
    }

    /// The same elements, in the same order, with another shape. Shares the
    /// memory.
    ///
    /// # Errors
    /// If the shape has not as many elements.
    pub fn reshape(&self, shape: &[usize]) -> Result<Tensor> {
        let bytes = bytes_of(self.dtype, shape)?;
        if bytes != self.bytes {
            return Err(Error::tensor(format!(
                "a tensor of shape {:?} has {} elements, shape {shape:?} has {}",
                self.shape(),
                self.numel(),
                bytes / self.dtype.size()
            )));
        }
        Ok(Tensor { shape: shape.into(), ..self.clone() })
    }
}
