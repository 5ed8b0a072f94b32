//! A ticket's payload: one batch on its way through the workers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pinfeed_mem::{Claim, Finished};

use super::make::{Made, Whole, make_rows, place};
use super::shared::Shared;
use crate::batch::Batch;
use crate::collate::Layout;
use crate::dataset::{Context, Dataset};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::sample::{Columns, SampleBuf};

/// One batch to be made.
pub(super) struct Job {
    pub(super) epoch: u64,
    pub(super) indices: Vec<usize>,
    /// The layout its slots were laid out for, once they are.
    layout: OnceLock<Arc<Layout>>,
    /// The lowest row that failed so far: later ones need not be made.
    failed: AtomicUsize,
    /// What the threads have left. Locked once a chunk, and only if there is
    /// something.
    made: Mutex<Made>,
}

pub(super) type JobClaim = Claim<Job, Result<Batch>>;
type JobFinished = Finished<Job, Result<Batch>>;

impl Job {
    pub(super) fn new(epoch: u64, indices: Vec<usize>) -> Self {
        Job {
            epoch,
            indices,
            layout: OnceLock::new(),
            failed: AtomicUsize::new(usize::MAX),
            made: Mutex::default(),
        }
    }

    /// A ticket whose batch can not be made: its error comes at its turn.
    pub(super) fn failed(epoch: u64, error: Error) -> Self {
        let job = Self::new(epoch, Vec::new());
        job.failed.store(0, Ordering::Relaxed);
        job.add(Made { failure: Some((0, error)), ..Made::default() });
        job
    }

    fn add(&self, made: Made) {
        if made.is_empty() {
            return;
        }
        if let Some((row, _)) = made.failure {
            self.failed.fetch_min(row, Ordering::Relaxed);
        }
        self.made.lock().unwrap_or_else(PoisonError::into_inner).add(made);
    }
}

/// Makes the rows of a claim; with the last of a ticket, its batch.
pub(super) fn run<D: Dataset>(mut claim: JobClaim, shared: &Shared<D>, cx: &mut Context) {
    let mut made = Made::default();
    let rows = claim.rows();
    cx.serve(claim.payload().epoch, shared.settings.seed);
    cx.watch(claim.cancelled());
    // Rows are claimed in order, so every row below one that failed is made.
    if claim.payload().failed.load(Ordering::Relaxed) > rows.start && !cx.is_cancelled() {
        if let Err(error) = rows_of(&mut claim, shared, cx, &mut made) {
            made.fail(rows.start, error);
        }
        claim.payload().add(made);
    }
    if let Some(finished) = claim.finish() {
        end(finished, shared);
    }
}

/// An error is one of memory; what the data set did wrong is in `made`.
fn rows_of<D: Dataset>(
    claim: &mut JobClaim,
    shared: &Shared<D>,
    cx: &mut Context,
    made: &mut Made,
) -> Result<()> {
    let mut rows = claim.rows();
    if shared.collate.is_some() {
        let indices = &claim.payload().indices[rows.clone()];
        make_rows(&shared.dataset, indices, rows.start, None, made, cx);
        return Ok(());
    }
    // Before any layout is known, samples are made beside, one at a time, till
    // one is there to show it.
    while !lay(claim, shared, None)? {
        let Some(row) = rows.next() else { return Ok(()) };
        let index = claim.payload().indices[row];
        make_rows(&shared.dataset, &[index], row, None, made, cx);
        if made.failure.is_some() {
            return Ok(());
        }
        let Some((_, sample)) = made.aside.spilled.pop() else { continue };
        lay(claim, shared, Some(&sample))?;
        let (job, columns) = claim.columns(row..row + 1);
        let (layout, columns) = laid(job, columns)?;
        if *sample.spec() == layout.spec {
            place(&sample, row, layout, columns, &mut made.aside);
            cx.give_sample(sample);
        } else {
            made.aside.spilled.push((row, sample));
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let (job, columns) = claim.columns(rows.clone());
    let (layout, columns) = laid(job, columns)?;
    let indices = &job.indices[rows.clone()];
    make_rows(&shared.dataset, indices, rows.start, Some((&layout.spec, columns)), made, cx);
    Ok(())
}

/// Has the ticket laid out, if a layout is known or `first` shows one. Says
/// whether it is.
fn lay<D: Dataset>(
    claim: &mut JobClaim,
    shared: &Shared<D>,
    first: Option<&SampleBuf>,
) -> Result<bool> {
    if claim.is_laid() {
        return Ok(true);
    }
    let rows = claim.ticket_rows();
    let layout = match first {
        None => shared.guess.get(rows)?,
        Some(sample) => Some(shared.guess.first(sample.spec(), rows, |l| shared.learned(l))?),
    };
    let Some(layout) = layout else { return Ok(false) };
    claim.lay(|job| {
        let grid = layout.grid(&shared.memory)?;
        // Once: `lay` calls this for the first claim only.
        job.layout.get_or_init(|| layout);
        Ok::<_, Error>(grid)
    })?;
    Ok(true)
}

/// The layout and the memory of a ticket that is laid out.
fn laid<'a>(job: &'a Job, columns: Option<Columns<'a>>) -> Result<(&'a Layout, Columns<'a>)> {
    match (job.layout.get(), columns) {
        (Some(layout), Some(columns)) => Ok((layout, columns)),
        _ => Err(Error::new(ErrorKind::Memory, "a batch without memory")),
    }
}

/// Makes the batch of a ticket whose rows are all made, and hands it over.
fn end<D: Dataset>(mut finished: JobFinished, shared: &Shared<D>) {
    let grid = finished.grid.take();
    let job = finished.payload();
    let made = std::mem::take(&mut *job.made.lock().unwrap_or_else(PoisonError::into_inner));
    let whole = Whole {
        number: finished.number(),
        indices: &job.indices,
        laid: job.layout.get().cloned().zip(grid),
        made,
    };
    let result = whole.finish(shared);
    finished.deliver(result);
}
