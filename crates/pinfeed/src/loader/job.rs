//! A ticket's payload: a batch on its way through the workers, or several
//! small ones.

use std::collections::VecDeque;
use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pinfeed_mem::{Claim, Finished, Lane, Queue};

use super::make::{Made, Whole, make_rows, place};
use super::maker::Maker;
use super::shared::Shared;
use crate::batch::Batch;
use crate::collate::Layout;
use crate::dataset::{Context, Dataset};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::sample::{Columns, SampleBuf};

/// What a ticket is issued with: one batch to be made, or a bundle of them.
pub(super) struct Job {
    pub(super) epoch: u64,
    /// The number of the (first) batch.
    pub(super) number: u64,
    indices: Vec<usize>,
    /// Batches of so many samples, so small that handing over each by itself
    /// would cost more than making it: one thread makes them all. The ticket
    /// then has one row, and the fields below are not used.
    bundle: Option<Arc<Bundle>>,
    /// The layout its slots were laid out for, once they are.
    layout: OnceLock<Arc<Layout>>,
    /// The lowest row that failed so far: later ones need not be made.
    failed: AtomicUsize,
    /// What the threads have left. Locked once a chunk, and only if there is
    /// something.
    made: Mutex<Made>,
}

/// Several small batches, and those of them that are made. The iterator takes
/// them all when the ticket comes back; sooner, if that takes long.
pub(super) struct Bundle {
    /// The numbers of its batches.
    numbers: Range<u64>,
    batch_size: usize,
    made: Mutex<Vec<Result<Batch>>>,
}

impl Bundle {
    /// Room for so many batches: had, and in the end freed, by the thread that
    /// issues the ticket.
    fn new(first: u64, batch_size: usize, batches: usize) -> Arc<Self> {
        let made = Mutex::new(Vec::with_capacity(batches));
        Arc::new(Bundle { numbers: first..first + batches as u64, batch_size, made })
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Result<Batch>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves what is made to the end of `ready`.
    pub(super) fn take_into(&self, ready: &mut VecDeque<Result<Batch>>) {
        ready.extend(self.lock().drain(..));
    }
}

/// What a ticket comes back with.
pub(super) enum Outcome {
    One(Result<Batch>),
    /// The bundle has the batches.
    Bundle,
}

pub(super) type JobQueue = Queue<Job, Outcome>;
pub(super) type JobLane = Lane<Job, Outcome>;
pub(super) type JobClaim = Claim<Job, Outcome>;
type JobFinished = Finished<Job, Outcome>;

impl Job {
    pub(super) fn new(epoch: u64, number: u64, indices: Vec<usize>) -> Self {
        Job {
            epoch,
            number,
            indices,
            bundle: None,
            layout: OnceLock::new(),
            failed: AtomicUsize::new(usize::MAX),
            made: Mutex::default(),
        }
    }

    /// Several batches, each of `batch_size` samples but for the last.
    pub(super) fn bundle(
        epoch: u64,
        number: u64,
        indices: Vec<usize>,
        batch_size: usize,
    ) -> (Self, Arc<Bundle>) {
        let bundle = Bundle::new(number, batch_size, indices.len().div_ceil(batch_size));
        let job = Self::new(epoch, number, indices);
        (Job { bundle: Some(Arc::clone(&bundle)), ..job }, bundle)
    }

    /// A batch that can not be made: its error comes at its turn.
    pub(super) fn failed(epoch: u64, number: u64, error: Error) -> Self {
        let job = Self::new(epoch, number, Vec::new());
        job.failed.store(0, Ordering::Relaxed);
        job.add(Made { failure: Some((0, error)), ..Made::default() });
        job
    }

    /// The rows of its ticket.
    pub(super) fn rows(&self) -> usize {
        if self.bundle.is_some() { 1 } else { self.indices.len() }
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

/// Does the work of a claim; with the last of a ticket, hands over what it
/// comes to. Returns how many samples were made; 0 if that is not known, or
/// says nothing of what they cost.
pub(super) fn run<D: Dataset>(mut claim: JobClaim, shared: &Shared<D>, maker: &mut Maker) -> usize {
    let job = claim.payload();
    maker.cx.serve(job.epoch, shared.settings.seed);
    maker.cx.watch(claim.cancelled());
    if let Some(bundle) = &job.bundle {
        let samples = make_bundle(job, bundle, shared, maker);
        if let Some(finished) = claim.finish() {
            finished.deliver(Outcome::Bundle);
        }
        return samples;
    }
    let rows = claim.rows();
    let mut samples = 0;
    // Rows are claimed in order, so every row below one that failed is made.
    if job.failed.load(Ordering::Relaxed) > rows.start && !maker.cx.is_cancelled() {
        let mut made = Made::default();
        if let Err(error) = rows_of(&mut claim, shared, &mut maker.cx, &mut made) {
            made.fail(rows.start, error);
        }
        samples = if made.failure.is_none() { rows.len() } else { 0 };
        claim.payload().add(made);
    }
    // For a dropped iterator nothing is collated: its rows are not all made.
    if let Some(finished) = claim.finish()
        && !maker.cx.is_cancelled()
    {
        end(finished, shared);
    }
    samples
}

/// Makes the batches of a bundle, one after the other.
fn make_bundle<D: Dataset>(
    job: &Job,
    bundle: &Bundle,
    shared: &Shared<D>,
    maker: &mut Maker,
) -> usize {
    let mut samples = 0;
    let batches = job.indices.chunks(bundle.batch_size);
    for (number, indices) in (job.number..).zip(batches) {
        if maker.cx.is_cancelled() {
            break;
        }
        let batch = maker.make(shared, number, indices);
        samples += batch.as_ref().map_or(0, Batch::len);
        bundle.lock().push(batch);
    }
    samples
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
    let made = mem::take(&mut *job.made.lock().unwrap_or_else(PoisonError::into_inner));
    let whole = Whole {
        number: job.number,
        indices: &job.indices,
        laid: job.layout.get().cloned().zip(grid),
        made,
    };
    let batch = whole.finish(shared);
    finished.deliver(Outcome::One(batch));
}
