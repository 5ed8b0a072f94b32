//! Making a batch: rows by the data set, then the whole of it.
//!
//! The same steps for a worker, which has some rows of a ticket, and for
//! `num_workers = 0`, where `next()` has all of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pinfeed_mem::Grid;

use super::shared::Shared;
use crate::batch::Batch;
use crate::collate::{BatchMut, Layout, mismatch};
use crate::dataset::{Context, Dataset};
use crate::error::{BoxError, Error, Kind as ErrorKind, Result};
use crate::sample::{Aside, Columns, Kind, Rows, SampleBuf, Spec, Text};

/// A failed row: its place in the batch, and why.
pub(super) type Failure = (usize, Error);

/// What making rows has left beside the slot, of all threads together.
#[derive(Debug, Default)]
pub(super) struct Made {
    pub(super) aside: Aside,
    /// The lowest row that failed.
    pub(super) failure: Option<Failure>,
}

impl Made {
    /// Adds what another thread has made.
    pub(super) fn add(&mut self, other: Made) {
        self.aside.texts.extend(other.aside.texts);
        self.aside.spilled.extend(other.aside.spilled);
        if let Some((row, error)) = other.failure {
            self.fail(row, error);
        }
    }

    pub(super) fn fail(&mut self, row: usize, error: Error) {
        if self.failure.as_ref().is_none_or(|(lowest, _)| row < *lowest) {
            self.failure = Some((row, error));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.failure.is_none() && self.aside.texts.is_empty() && self.aside.spilled.is_empty()
    }
}

/// Has the data set write the samples `indices` to the rows `first..`, up to
/// the first that fails. Without a layout they go to buffers beside.
pub(super) fn make_rows<D: Dataset>(
    dataset: &D,
    indices: &[usize],
    first: usize,
    layout: Option<(&Spec, Columns<'_>)>,
    made: &mut Made,
    cx: &mut Context,
) {
    let Made { aside, failure } = made;
    let mut rows = Rows::new(layout, first, indices, aside);
    if let Err((row, error)) = write_rows(dataset, indices, &mut rows, cx) {
        *failure = Some((first + row, error.at_index(indices[row]).at_worker(cx.worker())));
    }
}

fn write_rows<D: Dataset>(
    dataset: &D,
    indices: &[usize],
    rows: &mut Rows<'_>,
    cx: &mut Context,
) -> std::result::Result<(), Failure> {
    // Unwind safe: after a panic, what was being written is thrown away.
    let tried = caught(ErrorKind::Dataset, || dataset.get_many(indices, rows, cx));
    let error = match tried {
        Ok(()) if rows.is_complete() => return Ok(()),
        Ok(()) => {
            let (row, done) = rows.missing();
            let rows = indices.len();
            let message = format!("get_many returned Ok, but wrote {done} of {rows} rows");
            return Err((row, Error::new(ErrorKind::Dataset, message)));
        }
        Err(error) => error,
    };
    if let Some(row) = rows.current() {
        rows.abandon_current();
        return Err((row, error));
    }
    // A column was being filled. Which sample is to blame is found out one by
    // one; should none fail now, the batch is whole.
    rows.restart();
    let again = caught(ErrorKind::Dataset, || {
        rows.each(indices, cx, |index, row, cx| dataset.get(index, row, cx))
    });
    match again {
        Ok(()) => Ok(()),
        Err(error) => {
            let row = rows.current().unwrap_or(0);
            rows.abandon_current();
            Err((row, error))
        }
    }
}

/// Runs user code of a stage; a panic is an error.
fn caught(
    stage: ErrorKind,
    call: impl FnOnce() -> std::result::Result<(), BoxError>,
) -> Result<()> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Error::from_user(stage, error)),
        Err(panic) => Err(Error::from_panic(stage, panic)),
    }
}

/// The samples of a batch whose rows are all made, or failed.
pub(super) struct Whole<'a> {
    pub(super) number: u64,
    pub(super) indices: &'a [usize],
    /// The layout the rows were written in, and their memory. None if no
    /// sample was ever written in a slot.
    pub(super) laid: Option<(Arc<Layout>, Grid)>,
    pub(super) made: Made,
}

impl Whole<'_> {
    /// The batch, or the error that its lowest failing sample had.
    #[inline]
    pub(super) fn finish<D: Dataset>(self, shared: &Shared<D>) -> Result<Batch> {
        // Mostly every sample is where it belongs, and nothing lies beside.
        match self.laid {
            Some((layout, grid)) if self.made.is_empty() && shared.collate.is_none() => {
                Ok(Batch::new(
                    self.number,
                    self.indices.len(),
                    layout,
                    grid.seal(),
                    Vec::new(),
                    &shared.memory,
                ))
            }
            laid => Whole { laid, ..self }.sorted_out(shared),
        }
    }

    #[inline(never)]
    fn sorted_out<D: Dataset>(self, shared: &Shared<D>) -> Result<Batch> {
        let number = self.number;
        self.batch(shared).map_err(|error| error.at_batch(number))
    }

    fn batch<D: Dataset>(mut self, shared: &Shared<D>) -> Result<Batch> {
        if let Some((_, error)) = self.made.failure.take() {
            return Err(error);
        }
        if shared.collate.is_some() {
            return self.collated(shared);
        }
        if !self.made.aside.spilled.is_empty() {
            self = self.laid_out_again(shared)?;
        }
        let Some((layout, grid)) = self.laid else {
            return Err(Error::new(ErrorKind::Collate, "no sample was made"));
        };
        let texts = texts(&layout.spec, self.indices.len(), self.made.aside);
        Ok(Batch::new(self.number, self.indices.len(), layout, grid.seal(), texts, &shared.memory))
    }

    /// Some samples did not have the layout of the slot. The lowest sample
    /// decides: either all agree with it, and the batch is laid out for them,
    /// or the samples do not fit together.
    fn laid_out_again<D: Dataset>(mut self, shared: &Shared<D>) -> Result<Self> {
        let spilled = std::mem::take(&mut self.made.aside.spilled);
        let in_slot = self.laid.as_ref().map(|(layout, _)| &layout.spec);
        let mut specs: Vec<Option<&Spec>> = vec![in_slot; self.indices.len()];
        for (row, sample) in &spilled {
            specs[*row] = Some(sample.spec());
        }
        let Some(&Some(lowest)) = specs.first() else {
            return Err(Error::new(ErrorKind::Collate, "no sample was made"));
        };
        if let Some((row, Some(odd))) =
            specs.iter().enumerate().find(|(_, spec)| **spec != Some(lowest))
        {
            return Err(mismatch((self.indices[0], lowest), (self.indices[row], odd)));
        }
        if in_slot != Some(lowest) {
            let layout = Layout::of_samples(lowest.clone(), self.indices.len())?;
            shared.guess.set(&layout);
            // The memory that was laid out in vain goes first.
            self.laid = None;
            let grid = layout.grid(&shared.memory)?;
            self.laid = Some((layout, grid));
        }
        if let Some((layout, grid)) = &mut self.laid {
            for (row, sample) in spilled {
                place(&sample, row, layout, grid.columns(row..row + 1), &mut self.made.aside);
            }
        }
        Ok(self)
    }

    /// A collate function of the user's makes the batch.
    fn collated<D: Dataset>(self, shared: &Shared<D>) -> Result<Batch> {
        let Some(collate) = &shared.collate else { unreachable!("checked by the caller") };
        let mut spilled = self.made.aside.spilled;
        spilled.sort_unstable_by_key(|(row, _)| *row);
        let samples: Vec<SampleBuf> = spilled.into_iter().map(|(_, sample)| sample).collect();
        let mut batch = BatchMut::new(&shared.memory);
        caught(ErrorKind::Collate, || collate.collate(&samples, &mut batch))?;
        let made = batch.finish()?;
        Ok(Batch::new(
            self.number,
            self.indices.len(),
            made.layout,
            made.grid.seal(),
            made.texts,
            &shared.memory,
        ))
    }
}

/// Writes a sample that was made beside to its row.
pub(super) fn place(
    sample: &SampleBuf,
    row: usize,
    layout: &Layout,
    columns: Columns<'_>,
    aside: &mut Aside,
) {
    let mut columns = columns;
    let fields = layout.spec.fields.iter().zip(columns.as_mut_slice());
    for (position, (field, column)) in fields.enumerate() {
        let bytes = sample.field_bytes(position);
        match field.kind {
            Kind::Tensor { .. } => column.copy_from_slice(bytes),
            Kind::Text | Kind::Bytes => {
                aside.texts.push(Text { row, field: position, bytes: bytes.into() });
            }
        }
    }
}

/// The strings of each field, in the order of the rows.
fn texts(spec: &Spec, rows: usize, aside: Aside) -> Vec<Vec<Box<[u8]>>> {
    if aside.texts.is_empty() {
        return Vec::new();
    }
    let mut texts: Vec<Vec<Box<[u8]>>> = spec
        .fields
        .iter()
        .map(|field| match field.kind {
            Kind::Tensor { .. } => Vec::new(),
            Kind::Text | Kind::Bytes => vec![Box::default(); rows],
        })
        .collect();
    for text in aside.texts {
        texts[text.field][text.row] = text.bytes;
    }
    texts
}
