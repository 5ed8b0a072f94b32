//! Every index once, shuffled.

use super::{Generator, Indices, Sampler};
use crate::error::BoxError;

/// Every index of `0..len` once, in random order: PyTorch's `RandomSampler`
/// without a generator of its own.
#[derive(Clone, Copy, Debug)]
pub struct RandomSampler {
    len: usize,
}

impl RandomSampler {
    /// For a data set of `len` samples.
    pub fn new(len: usize) -> Self {
        RandomSampler { len }
    }
}

impl Sampler for RandomSampler {
    /// Draws a seed, and shuffles by a generator of that seed, as PyTorch does.
    fn indices(&self, generator: &mut Generator) -> Result<Box<dyn Indices>, BoxError> {
        let seed = generator.random_i64() as u64;
        Ok(Box::new(Shuffle::new(self.len, Generator::manual_seed(seed))))
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// From this length on, `torch.randperm` shuffles another way ((2^32-1)/20).
const INSIDE_OUT: usize = 214_748_364;

/// `torch.randperm(len)`, as it is asked for: below `INSIDE_OUT`, the first
/// batch does not wait for the last swap.
struct Shuffle {
    order: Vec<usize>,
    /// How many of `order` have their final value, and of those, how many were
    /// given out; the two are the same.
    next: usize,
    generator: Option<Generator>,
}

impl Shuffle {
    fn new(len: usize, mut generator: Generator) -> Self {
        if len < INSIDE_OUT {
            let order = (0..len).collect();
            return Shuffle { order, next: 0, generator: Some(generator) };
        }
        let mut order: Vec<usize> = Vec::with_capacity(len);
        for i in 0..len {
            let z = (generator.random_u64() % (i as u64 + 1)) as usize;
            order.push(i);
            order[i] = order[z];
            order[z] = i;
        }
        Shuffle { order, next: 0, generator: None }
    }
}

impl Indices for Shuffle {
    fn take_into(&mut self, count: usize, out: &mut Vec<usize>) {
        let end = self.next.saturating_add(count).min(self.order.len());
        if let Some(generator) = &mut self.generator {
            // Fisher and Yates: place i gets one of those not placed yet.
            for i in self.next..end.min(self.order.len().saturating_sub(1)) {
                let left = self.order.len() - i;
                self.order.swap(i, i + generator.random_u32() as usize % left);
            }
        }
        out.extend_from_slice(&self.order[self.next..end]);
        self.next = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(len: usize, seed: u64, step: usize) -> Vec<usize> {
        let mut shuffle = Shuffle::new(len, Generator::manual_seed(seed));
        let mut out = Vec::new();
        while {
            let before = out.len();
            shuffle.take_into(step, &mut out);
            out.len() > before
        } {}
        out
    }

    /// Values of `torch.randperm(10)` after `torch.manual_seed(seed)`.
    #[test]
    fn as_torch() {
        assert_eq!(order(10, 0, 10), [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]);
        assert_eq!(order(10, 42, 3), [2, 6, 1, 8, 4, 5, 0, 9, 3, 7]);
    }

    #[test]
    fn every_index_once_however_it_is_asked_for() {
        for len in [0, 1, 2, 7, 100] {
            let whole = order(len, 5, len.max(1));
            let mut sorted = whole.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..len));
            for step in [1, 3, 64] {
                assert_eq!(order(len, 5, step), whole);
            }
        }
    }
}
