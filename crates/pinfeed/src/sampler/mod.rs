//! Samplers: which samples, in what order.

mod generator;
mod random;
mod sequential;

use crate::error::BoxError;

pub use generator::Generator;
pub use random::RandomSampler;
pub use sequential::SequentialSampler;

/// Which samples of a data set an epoch has, and in what order.
pub trait Sampler: Send + Sync {
    /// The indices of one epoch. Everything random is drawn here, from
    /// `generator`, so that an epoch that is broken off leaves the generator
    /// where a full one would.
    ///
    /// # Errors
    /// Whatever keeps the sampler from sampling; the loader's `iter` fails.
    fn indices(&self, generator: &mut Generator) -> Result<Box<dyn Indices>, BoxError>;

    /// How many indices an epoch has.
    fn len(&self) -> usize;

    /// No indices?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Indices, in order, some at a time. Every iterator of `usize` is one.
pub trait Indices: Send {
    /// Appends the next `count` indices to `out`; fewer only at the end.
    fn take_into(&mut self, count: usize, out: &mut Vec<usize>);
}

impl<I: Iterator<Item = usize> + Send> Indices for I {
    fn take_into(&mut self, count: usize, out: &mut Vec<usize>) {
        out.extend(self.by_ref().take(count));
    }
}
