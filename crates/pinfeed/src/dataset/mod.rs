//! Data sets: where samples come from.

mod concat;
mod context;
mod func;
mod map;
mod subset;
mod synthetic;
mod tensors;

use std::sync::Arc;

use crate::error::BoxError;
use crate::sample::{Row, Rows, SampleRef, Spec};

pub use concat::ConcatDataset;
pub use context::Context;
pub use func::{FnDataset, from_fn, try_from_fn};
pub use map::{Map, Transform};
pub use subset::Subset;
pub use synthetic::Synthetic;
pub use tensors::TensorDataset;

/// A data set with samples `0..len()`, each got by its index.
///
/// Worker threads call [`get`](Dataset::get) at the same time, each with a row
/// of its own, which lies where the batch lies: what is written there is not
/// copied again.
///
/// ```
/// use pinfeed::{BoxError, Context, Dataset, Row};
///
/// /// Squares: sample i is (i, i * i).
/// struct Squares(usize);
///
/// impl Dataset for Squares {
///     fn len(&self) -> usize {
///         self.0
///     }
///
///     fn get(&self, index: usize, row: &mut Row<'_>, _: &mut Context) -> Result<(), BoxError> {
///         row.put(index as i64)?;
///         row.put((index * index) as i64)?;
///         Ok(())
///     }
/// }
/// ```
pub trait Dataset: Send + Sync {
    /// The number of samples.
    fn len(&self) -> usize;

    /// Writes sample `index` to `row`: all its fields, in order.
    ///
    /// The loader asks only for indices below [`len`](Dataset::len), as it was
    /// when the iterator was made.
    ///
    /// # Errors
    /// Whatever kept the sample from being made. The loader adds the index,
    /// the batch and the worker, and gives it to the user at that batch's turn.
    fn get(&self, index: usize, row: &mut Row<'_>, cx: &mut Context) -> Result<(), BoxError>;

    /// Writes the samples `indices` to as many rows: one by one, unless the
    /// data set can do better (a gather from a table, one read for many rows).
    ///
    /// # Errors
    /// As [`get`](Dataset::get).
    #[inline]
    fn get_many(
        &self,
        indices: &[usize],
        rows: &mut Rows<'_>,
        cx: &mut Context,
    ) -> Result<(), BoxError> {
        rows.each(indices, cx, |index, row, cx| self.get(index, row, cx))
    }

    /// What each sample consists of, if that is known beforehand. Without it
    /// the loader learns it from each batch's first sample.
    fn spec(&self) -> Option<Spec> {
        None
    }

    /// Sample `index` where it lies, if it lies in memory: lets a
    /// [`map`](Dataset::map) read it without a copy.
    fn lend(&self, index: usize) -> Option<SampleRef<'_>> {
        let _ = index;
        None
    }

    /// No samples?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// This data set with `transform` applied to each sample.
    fn map<T: Transform>(self, transform: T) -> Map<Self, T>
    where
        Self: Sized,
    {
        Map::new(self, transform)
    }
}

macro_rules! forward {
    ($($owner:ty),*) => {$(
        impl<D: Dataset + ?Sized> Dataset for $owner {
            fn len(&self) -> usize {
                D::len(self)
            }

            fn get(
                &self,
                index: usize,
                row: &mut Row<'_>,
                cx: &mut Context,
            ) -> Result<(), BoxError> {
                D::get(self, index, row, cx)
            }

            fn get_many(
                &self,
                indices: &[usize],
                rows: &mut Rows<'_>,
                cx: &mut Context,
            ) -> Result<(), BoxError> {
                D::get_many(self, indices, rows, cx)
            }

            fn spec(&self) -> Option<Spec> {
                D::spec(self)
            }

            fn lend(&self, index: usize) -> Option<SampleRef<'_>> {
                D::lend(self, index)
            }
        }
    )*};
}

forward!(Arc<D>, Box<D>);
