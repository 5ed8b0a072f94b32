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
        IndexBatches {
            source: Some(source),
            batch_size,
            drop_last,
            dataset_len,
            declared,
            given: 0,
        }
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
            return Some(Err(Error::from_panic(Kind::Sampler, panic)));
        }
        self.given += out.len();
        if out.len() > size || self.given > self.declared {
            self.source = None;
            let (declared, given) = (self.declared, self.given);
            let message = if out.len() > size {
                format!("the sampler gave {} indices when it was asked for {size}", out.len())
            } else {
                format!("the sampler has a length of {declared}, but gave {given} indices")
            };
            return Some(Err(Error::new(Kind::Sampler, message)));
        }
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
        if all_below(out, self.dataset_len) {
            return Some(Ok(()));
        }
        let index = out.iter().copied().max().unwrap_or_default();
        let len = self.dataset_len;
        let message = format!("the sampler gave index {index}, and the data set has {len} samples");
        Some(Err(Error::new(Kind::Sampler, message).at_index(index)))
    }
}

/// Is every index below `len`? Without a branch an index: `i` and `last - i`
/// both keep the top bit clear just if `i <= last`, for lengths that fit in
/// `isize`, as those of anything in memory do.
fn all_below(indices: &[usize], len: usize) -> bool {
    let Some(last) = len.checked_sub(1).filter(|&last| last <= isize::MAX as usize) else {
        return indices.iter().all(|&i| i < len);
    };
    let bits = indices.iter().fold(0, |bits, &i| bits | i | last.wrapping_sub(i));
    bits <= isize::MAX as usize
}

#[cfg(test)]
mod tests {
    use super::all_below;

    #[test]
    fn below_and_not() {
        let top = 1usize << (usize::BITS - 1);
        for len in [0, 1, 2, 10, top - 1, top, top + 1, usize::MAX] {
            for i in [0, 1, 2, 9, 10, 11, top - 2, top - 1, top, top + 1, usize::MAX] {
                assert_eq!(all_below(&[i], len), i < len, "{i} < {len}");
                assert_eq!(all_below(&[0, i, 0], len), i < len && 0 < len, "{i} < {len}");
            }
        }
        assert!(all_below(&[], 0));
    }
}
