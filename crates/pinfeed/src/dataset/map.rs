//! A data set with a function applied to each sample.

use super::{Context, Dataset};
use crate::error::BoxError;
use crate::sample::{Row, SampleRef, Spec};

/// A function of a sample that writes another. Closures of this shape are one.
pub trait Transform: Send + Sync {
    /// Reads `sample` and writes what it makes of it to `row`.
    ///
    /// # Errors
    /// As [`Dataset::get`].
    fn apply(
        &self,
        sample: SampleRef<'_>,
        row: &mut Row<'_>,
        cx: &mut Context,
    ) -> Result<(), BoxError>;

    /// What it makes of samples of `spec`, if that is known beforehand.
    fn spec(&self, spec: &Spec) -> Option<Spec> {
        let _ = spec;
        None
    }
}

impl<F> Transform for F
where
    F: Fn(SampleRef<'_>, &mut Row<'_>, &mut Context) -> Result<(), BoxError> + Send + Sync,
{
    #[inline]
    fn apply(
        &self,
        sample: SampleRef<'_>,
        row: &mut Row<'_>,
        cx: &mut Context,
    ) -> Result<(), BoxError> {
        self(sample, row, cx)
    }
}

/// A data set with a [`Transform`] applied to each sample: see
/// [`Dataset::map`].
#[derive(Clone, Debug)]
pub struct Map<D, T> {
    inner: D,
    transform: T,
}

impl<D, T> Map<D, T> {
    pub(crate) fn new(inner: D, transform: T) -> Self {
        Map { inner, transform }
    }

    /// The data set underneath.
    pub fn inner(&self) -> &D {
        &self.inner
    }
}

impl<D: Dataset, T: Transform> Dataset for Map<D, T> {
    fn len(&self) -> usize {
        self.inner.len()
    }

    #[inline]
    fn get(&self, index: usize, row: &mut Row<'_>, cx: &mut Context) -> Result<(), BoxError> {
        if let Some(sample) = self.inner.lend(index) {
            return self.transform.apply(sample, row, cx);
        }
        let buf = cx.take_sample();
        let sample = Row::beside(buf, |row| self.inner.get(index, row, cx))?;
        let result = self.transform.apply(sample.as_ref(), row, cx);
        cx.give_sample(sample);
        result
    }

    fn spec(&self) -> Option<Spec> {
        self.transform.spec(&self.inner.spec()?)
    }
}
