//! `num_workers = 0`: the caller of `next()` makes the batch.

use std::sync::Arc;

use super::indices::IndexBatches;
use super::maker::Maker;
use super::shared::Shared;
use crate::batch::Batch;
use crate::dataset::{Context, Dataset};
use crate::error::Result;

/// What the caller's thread keeps from batch to batch.
pub(super) struct Direct {
    maker: Maker,
    indices: Vec<usize>,
    number: u64,
}

impl Default for Direct {
    fn default() -> Self {
        let maker = Maker::new(Context::new(None, Arc::default()));
        Direct { maker, indices: Vec::new(), number: 0 }
    }
}

impl Direct {
    pub(super) fn next<D: Dataset>(
        &mut self,
        shared: &Shared<D>,
        epoch: u64,
        batches: &mut IndexBatches,
    ) -> Option<Result<Batch>> {
        let drawn = batches.next(&mut self.indices)?;
        let number = self.number;
        self.number += 1;
        self.maker.cx.serve(epoch, shared.settings.seed);
        Some(match drawn {
            Ok(()) => self.maker.make(shared, number, &self.indices),
            Err(error) => Err(error.at_batch(number)),
        })
    }
}
