//! One pass over the data.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use pinfeed_mem::{Lane, Next};

use super::crew::Crew;
use super::direct::Direct;
use super::indices::IndexBatches;
use super::job::Job;
use super::shared::Shared;
use crate::batch::Batch;
use crate::dataset::Dataset;
use crate::error::{Error, Kind, Result};

/// How long to wait before looking for workers that are stuck in the samples
/// of an iterator that is gone.
const PATROL: Duration = Duration::from_secs(1);

/// One pass over the data: an iterator of `Result<Batch>`.
///
/// It owns what it needs, can be sent to another thread, and may outlive the
/// loader. After an error it goes on with the next batch, if asked. Dropping
/// it cancels what was read ahead and waits for nobody.
pub struct Iter<D: Dataset + 'static> {
    shared: Arc<Shared<D>>,
    epoch: u64,
    /// Batches still to be handed over.
    left: usize,
    batches: IndexBatches,
    mode: Mode,
    /// What kept the epoch from beginning; the first `next` gives it.
    failed: Option<Error>,
}

enum Mode {
    /// The caller of `next` makes the batch.
    Direct(Direct),
    Workers {
        lane: Lane<Job, Result<Batch>>,
        crew: Arc<Crew>,
    },
    /// Nothing comes any more.
    Over,
}

impl<D: Dataset + 'static> Iter<D> {
    pub(super) fn new(
        shared: Arc<Shared<D>>,
        epoch: u64,
        batches: IndexBatches,
        count: usize,
        crew: Option<Arc<Crew>>,
    ) -> Self {
        let mode = match crew {
            Some(crew) => {
                let lane = Lane::new(crew.queue(), shared.settings.in_order);
                Mode::Workers { lane, crew }
            }
            None => Mode::Direct(Direct::default()),
        };
        let mut iter = Iter { shared, epoch, left: count, batches, mode, failed: None };
        iter.read_ahead();
        iter
    }

    /// An iterator that gives this error, and ends.
    pub(super) fn failing(shared: Arc<Shared<D>>, error: Error) -> Self {
        let batches = IndexBatches::new(Box::new(0..0), 0, 1, false, 0);
        let (epoch, failed) = (u64::MAX, Some(error));
        Iter { shared, epoch, left: 1, batches, mode: Mode::Over, failed }
    }

    /// The epoch's number, from 0: how many iterators the loader made before.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Issues tickets up to the window. With no workers there is none.
    fn read_ahead(&mut self) {
        let Mode::Workers { lane, .. } = &mut self.mode else { return };
        let window = self.shared.window();
        let room = window.saturating_sub(lane.outstanding());
        if room < window / 2 && lane.is_light(self.shared.settings.batch_size) {
            return;
        }
        while lane.outstanding() < window {
            let mut indices = Vec::new();
            match self.batches.next(&mut indices) {
                None => return,
                Some(Ok(())) => lane.issue(indices.len(), Job::new(self.epoch, indices)),
                Some(Err(error)) => lane.issue(1, Job::failed(self.epoch, error)),
            }
        }
    }

    /// Waits for the workers' next result.
    fn wait(&mut self) -> Option<Result<Batch>> {
        self.read_ahead();
        let Mode::Workers { lane, crew } = &mut self.mode else { return None };
        let timeout = self.shared.settings.timeout;
        let patrols = self.shared.settings.persistent_workers;
        if !patrols && timeout.is_none() {
            return match lane.next(None) {
                Next::Ready(result) => Some(result),
                Next::Empty | Next::TimedOut => None,
            };
        }
        let mut begun = None;
        loop {
            let waited = begun.map_or(Duration::ZERO, |b: Instant| b.elapsed());
            let left = timeout.map(|timeout| timeout.saturating_sub(waited));
            let slice = left.map_or(PATROL, |left| if patrols { left.min(PATROL) } else { left });
            match lane.next(Some(slice)) {
                Next::Ready(result) => return Some(result),
                Next::Empty => return None,
                Next::TimedOut => {}
            }
            let since = *begun.get_or_insert_with(|| Instant::now() - slice);
            if let Some(timeout) = timeout.filter(|&timeout| since.elapsed() >= timeout) {
                let number = lane.issued() - lane.outstanding() as u64;
                let number = Some(number).filter(|_| self.shared.settings.in_order);
                return Some(Err(timed_out(crew, self.epoch, number, timeout)));
            }
            if patrols && let Err(error) = patrol(crew, &self.shared) {
                return Some(Err(error));
            }
        }
    }
}

/// Replaces workers stuck in the samples of an iterator that is gone, and says
/// so.
fn patrol<D: Dataset + 'static>(crew: &Crew, shared: &Arc<Shared<D>>) -> Result<()> {
    let live = shared.live.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let stuck = crew.patrol(shared, |epoch| live.contains(&epoch))?;
    if !stuck.is_empty() {
        shared.warnings().once("stuck", || {
            format!(
                "stuck in the data set, for an iterator that was dropped: {}; other threads have \
                 taken their place",
                stuck.join(", ")
            )
        });
    }
    Ok(())
}

/// The error that names who is late. `number` is the batch waited for; without
/// order it is any.
fn timed_out(crew: &Crew, epoch: u64, number: Option<u64>, timeout: Duration) -> Error {
    let busy = crew.busy_with(epoch, number);
    let who: Vec<String> = busy
        .iter()
        .map(|(worker, index)| format!("worker {worker} is in sample {index}"))
        .collect();
    let who = match who.is_empty() {
        true => "no worker has come to it".to_owned(),
        false => who.join(", "),
    };
    let mut error =
        Error::new(Kind::Timeout, format!("the batch was not ready within {timeout:?}: {who}"))
            .with_hint(
                "next() waits for the same batch again; raise `timeout` if samples take this long",
            );
    if let Some(number) = number {
        error = error.at_batch(number);
    }
    match busy[..] {
        [(worker, index)] => error.at_index(index).at_worker(Some(worker)),
        _ => error,
    }
}

impl<D: Dataset + 'static> Iterator for Iter<D> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        if !self.shared.made.same_process() && !matches!(self.mode, Mode::Over) {
            // The workers, and the locks they held, are the parent's.
            std::mem::forget(std::mem::replace(&mut self.mode, Mode::Over));
            self.left = 0;
            return Some(Err(forked("iterator")));
        }
        let result = match &mut self.mode {
            Mode::Over => self.failed.take().map(Err),
            Mode::Direct(direct) => direct.next(&self.shared, self.epoch, &mut self.batches),
            Mode::Workers { .. } => {
                let result = self.wait();
                // Issued before the batch is given away: the workers go on
                // while the user is busy with it.
                self.read_ahead();
                result
            }
        };
        match &result {
            None => {
                self.left = 0;
                if let Mode::Workers { .. } = self.mode {
                    // The workers of this epoch go home.
                    self.mode = Mode::Over;
                }
            }
            // The same batch is still to come.
            Some(Err(error)) if error.is_timeout() => {}
            Some(_) => self.left = self.left.saturating_sub(1),
        }
        result
    }

    /// Exact: the number of batches (or errors in their place) to come.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// What using something in a forked child comes to.
pub(super) fn forked(what: &str) -> Error {
    Error::new(
        Kind::Fork,
        format!("this {what} was made before fork(); its threads and its memory are the parent's"),
    )
    .with_hint("make a new loader in the child")
}

impl<D: Dataset + 'static> Drop for Iter<D> {
    fn drop(&mut self) {
        if !self.shared.made.same_process() {
            std::mem::forget(std::mem::replace(&mut self.mode, Mode::Over));
            return;
        }
        let mut live = self.shared.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.retain(|&epoch| epoch != self.epoch);
    }
}

impl<D: Dataset + 'static> fmt::Debug for Iter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter")
            .field("epoch", &self.epoch)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
