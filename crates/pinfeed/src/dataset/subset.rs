//! Some samples of a data set.

use super::{Context, Dataset};
use crate::error::{BoxError, Error, Result};
use crate::sample::{Row, Rows, SampleRef, Spec};

/// The samples of a data set at the given indices, in their order.
#[derive(Clone, Debug)]
pub struct Subset<D> {
    inner: D,
    indices: Box<[usize]>,
}

impl<D: Dataset> Subset<D> {
    /// Sample `i` is sample `indices[i]` of `inner`. An index may be there
    /// more than once.
    ///
    /// # Errors
    /// If an index is not below `inner.len()`.
    pub fn new(inner: D, indices: impl Into<Vec<usize>>) -> Result<Self> {
        let indices = indices.into().into_boxed_slice();
        let len = inner.len();
        if let Some((at, index)) = indices.iter().enumerate().find(|(_, i)| **i >= len) {
            return Err(Error::config(format!(
                "Subset: index {index} (at position {at}) is out of range for a data set of {len} samples"
            )));
        }
        Ok(Subset { inner, indices })
    }

    /// The data set underneath.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The indices, in order.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, index: usize, row: &mut Row<'_>, cx: &mut Context) -> Result<(), BoxError> {
        self.inner.get(self.indices[index], row, cx)
    }

    fn get_many(
        &self,
        indices: &[usize],
        rows: &mut Rows<'_>,
        cx: &mut Context,
    ) -> Result<(), BoxError> {
        let inner: Vec<usize> = indices.iter().map(|&i| self.indices[i]).collect();
        self.inner.get_many(&inner, rows, cx)
    }

    fn spec(&self) -> Option<Spec> {
        self.inner.spec()
    }

    fn lend(&self, index: usize) -> Option<SampleRef<'_>> {
        self.inner.lend(self.indices[index])
    }
}
