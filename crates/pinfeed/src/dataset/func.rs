//! A data set from a closure.

use std::fmt;

use super::{Context, Dataset};
use crate::error::BoxError;
use crate::sample::{Row, Rows, Sample};

/// A data set of `len` samples, sample `i` being what `get(i)` returns.
///
/// ```
/// let squares = pinfeed::from_fn(10, |i| (i as i64, (i * i) as i64));
/// assert_eq!(pinfeed::Dataset::len(&squares), 10);
/// ```
pub fn from_fn<S, F>(
    len: usize,
    get: F,
) -> FnDataset<impl Fn(usize) -> Result<S, BoxError> + Send + Sync>
where
    S: Sample,
    F: Fn(usize) -> S + Send + Sync,
{
    try_from_fn(len, move |index| Ok(get(index)))
}

/// As [`from_fn`], for a closure that can fail.
pub fn try_from_fn<S, F>(len: usize, get: F) -> FnDataset<F>
where
    S: Sample,
    F: Fn(usize) -> Result<S, BoxError> + Send + Sync,
{
    FnDataset { len, get }
}

/// See [`from_fn`].
#[derive(Clone, Copy)]
pub struct FnDataset<F> {
    len: usize,
    get: F,
}

impl<F> fmt::Debug for FnDataset<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnDataset").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<S, F> Dataset for FnDataset<F>
where
    S: Sample,
    F: Fn(usize) -> Result<S, BoxError> + Send + Sync,
{
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn get(&self, index: usize, row: &mut Row<'_>, _: &mut Context) -> Result<(), BoxError> {
        Ok((self.get)(index)?.write(row)?)
    }

    #[inline]
    fn get_many(
        &self,
        indices: &[usize],
        rows: &mut Rows<'_>,
        cx: &mut Context,
    ) -> Result<(), BoxError> {
        S::write_each(indices, rows, cx, &self.get)
    }
}
