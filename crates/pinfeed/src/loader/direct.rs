//! `num_workers = 0`: the caller of `next()` makes the batch.

use std::sync::Arc;

use super::indices::IndexBatches;
use super::make::{Made, Whole, make_rows, place};
use super::shared::Shared;
use crate::batch::Batch;
use crate::collate::Layout;
use crate::dataset::{Context, Dataset};
use crate::error::{Error, Kind, Result};

use pinfeed_mem::Grid;

/// What the caller's thread keeps from batch to batch.
pub(super) struct Direct {
    cx: Context,
    indices: Vec<usize>,
    /// The layout of the batch before.
    layout: Option<Arc<Layout>>,
    number: u64,
}

impl Default for Direct {
    fn default() -> Self {
        Direct {
            cx: Context::new(None, Arc::default()),
            indices: Vec::new(),
            layout: None,
            number: 0,
        }
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
        self.cx.serve(epoch, shared.settings.seed);
        let batch =
            drawn.map_err(|error| error.at_batch(number)).and_then(|()| self.make(shared, number));
        Some(batch)
    }

    fn make<D: Dataset>(&mut self, shared: &Shared<D>, number: u64) -> Result<Batch> {
        let mut made = Made::default();
        let laid = if shared.collate.is_some() {
            make_rows(&shared.dataset, &self.indices, 0, None, &mut made, &mut self.cx);
            None
        } else {
            self.rows(shared, &mut made).map_err(|error| error.at_batch(number))?
        };
        let whole = Whole { number, indices: &self.indices, laid, made };
        let batch = whole.finish(shared)?;
        if shared.collate.is_none() {
            self.layout = Some(Arc::clone(batch.layout()));
        }
        Ok(batch)
    }

    /// Makes the rows, in the layout of the batch before if there was one.
    fn rows<D: Dataset>(
        &mut self,
        shared: &Shared<D>,
        made: &mut Made,
    ) -> Result<Option<(Arc<Layout>, Grid)>> {
        let rows = self.indices.len();
        let known = match self.layout.take() {
            Some(layout) => Some(layout.with_rows(rows)?),
            None => shared.guess.get(rows)?,
        };
        let (layout, mut grid, done) = match known {
            Some(layout) => {
                let grid = layout.grid(&shared.memory)?;
                (layout, grid, 0)
            }
            None => {
                // The first sample shows the layout.
                make_rows(&shared.dataset, &self.indices[..1], 0, None, made, &mut self.cx);
                if made.failure.is_some() {
                    return Ok(None);
                }
                let Some((_, sample)) = made.aside.spilled.pop() else {
                    return Err(Error::new(Kind::Collate, "no sample was made"));
                };
                let layout = shared.guess.first(sample.spec(), rows, |l| shared.learned(l))?;
                let mut grid = layout.grid(&shared.memory)?;
                if *sample.spec() == layout.spec {
                    place(&sample, 0, &layout, grid.columns(0..1), &mut made.aside);
                } else {
                    made.aside.spilled.push((0, sample));
                }
                (layout, grid, 1)
            }
        };
        if done < rows {
            let columns = grid.columns(done..rows);
            let indices = &self.indices[done..];
            let layout = Some((&layout.spec, columns));
            make_rows(&shared.dataset, indices, done, layout, made, &mut self.cx);
        }
        Ok(Some((layout, grid)))
    }
}
