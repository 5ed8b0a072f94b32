//! Whole batches by one thread: the caller of `next()`, or a worker with small
//! batches.

use std::sync::Arc;

use pinfeed_mem::Grid;

use super::make::{Made, Whole, make_rows, place};
use super::shared::Shared;
use crate::batch::Batch;
use crate::collate::Layout;
use crate::dataset::{Context, Dataset};
use crate::error::{Error, Kind, Result};

/// What a thread that makes batches keeps from one to the next.
pub(super) struct Maker {
    pub(super) cx: Context,
    /// The layout of the batch before.
    layout: Option<Arc<Layout>>,
}

impl Maker {
    pub(super) fn new(cx: Context) -> Self {
        Maker { cx, layout: None }
    }

    /// Makes the batch of the samples `indices`, at least one.
    pub(super) fn make<D: Dataset>(
        &mut self,
        shared: &Shared<D>,
        number: u64,
        indices: &[usize],
    ) -> Result<Batch> {
        let mut made = Made::default();
        let laid = if shared.collate.is_some() {
            make_rows(&shared.dataset, indices, 0, None, &mut made, &mut self.cx);
            None
        } else {
            self.rows(shared, indices, &mut made).map_err(|error| error.at_batch(number))?
        };
        let batch = Whole { number, indices, laid, made }.finish(shared)?;
        if shared.collate.is_none() {
            self.layout = Some(Arc::clone(batch.layout()));
        }
        Ok(batch)
    }

    /// Makes the rows, in the layout of the batch before if there was one.
    fn rows<D: Dataset>(
        &mut self,
        shared: &Shared<D>,
        indices: &[usize],
        made: &mut Made,
    ) -> Result<Option<(Arc<Layout>, Grid)>> {
        let rows = indices.len();
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
                make_rows(&shared.dataset, &indices[..1], 0, None, made, &mut self.cx);
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
            let known = Some((&layout.spec, columns));
            make_rows(&shared.dataset, &indices[done..], done, known, made, &mut self.cx);
        }
        Ok(Some((layout, grid)))
    }
}
