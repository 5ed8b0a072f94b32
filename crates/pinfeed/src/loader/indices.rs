//! A sampler's indices, cut into batches.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Kind, Result};
use crate::sampler::Indices;

/// The batches of one epoch, as indices.
pub(super) struct IndexBatches {
    /// Gone when it has ended.
    source: Option<Box<dyn Indices>>,
    batch_size: usize,
    drop_last: bool,
    /// Indices must be below this.
    dataset_len: usize,
    /// Indices the sampler said it has, and gave.
    declared: usize,
    given: usize,
}

impl IndexBatches {
    pub(super) fn new(
        source: Box<dyn Indices>,
        declared: usize,
        batch_size: usize,
        drop_last: bool,
        dataset_len: usize,
    ) -> Self {
        IndexBatches { source: Some(source), batch_size, drop_last, dataset_len, declared, given: 0 }
    }

    /// How many batches the epoch has.
    pub(super) fn count(declared: usize, batch_size: usize, drop_last: bool) -> usize {
        if drop_last { declared / batch_size } else { declared.div_ceil(batch_size) }
    }

    /// Puts the next batch's indices into `out`. `None`: there is no more. An
    /// error stands for a batch; more may follow.
    pub(super) fn next(&mut self, out: &mut Vec<usize>) -> Option<Result<()>> {
        out.clear();
        let source = self.source.as_mut()?;
        let size = self.batch_size;
        // A user's sampler may panic. It is not asked again then.
        let taken = catch_unwind(AssertUnwindSafe(|| source.take_into(size, out)));
        if let Err(panic) = taken {
            self.source = None;
            let error = Error::from_panic(panic);
            return Some(Err(Error::new(Kind::Sampler, "the sampler panicked").with_source(error)));
        }
        out.truncate(size);
        self.given += out.len();
        if out.len() < size {
            self.source = None;
            let short = out.is_empty() || self.drop_last;
            if self.given < self.declared {
                return Some(Err(Error::new(
                    Kind::Sampler,
                    format!(
                        "the sampler has a length of {}, but ended after {} indices",
                        self.declared, self.given
                    ),
                )));
            }
            if short {
                return None;
            }
        }
        match out.iter().copied().max().filter(|&max| max >= self.dataset_len) {
            Some(index) => Some(Err(Error::new(
                Kind::Sampler,
                format!(
                    "the sampler gave index {index}, and the data set has {} samples",
                    self.dataset_len
                ),
            )
            .at_index(index))),
            None => Some(Ok(())),
        }
    }
}
