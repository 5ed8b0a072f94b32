//! One after another.

use super::{Generator, Indices, Sampler};
use crate::error::BoxError;

/// The indices `0..len`, in order.
#[derive(Clone, Copy, Debug)]
pub struct SequentialSampler {
    len: usize,
}

impl SequentialSampler {
    /// For a data set of `len` samples.
    pub fn new(len: usize) -> Self {
        SequentialSampler { len }
    }
}

impl Sampler for SequentialSampler {
    fn indices(&self, _: &mut Generator) -> Result<Box<dyn Indices>, BoxError> {
        Ok(Box::new(0..self.len))
    }

    fn len(&self) -> usize {
        self.len
    }
}
