//! One pass over the data.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use pinfeed_mem::Next;

use super::crew::Crew;
use super::direct::Direct;
use super::indices::IndexBatches;
use super::job::{Bundle, Job, JobLane, Outcome};
use super::shared::Shared;
use crate::batch::Batch;
use crate::dataset::Dataset;
use crate::error::{Error, Kind, Result};

/// How long to wait before looking for workers that are stuck in the samples
/// of an iterator that is gone.
const PATROL: Duration = Duration::from_secs(1);

/// How long a bundle may take before the batches it has are taken out of it.
const LATE: Duration = Duration::from_millis(1);

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
    /// Batches issued, and of these, handed over.
    issued: u64,
    given: u64,
    batches: IndexBatches,
    /// The bundles issued, as long as their tickets are not back.
    bundles: VecDeque<Arc<Bundle>>,
    /// Their batches, taken and not yet handed over.
    ready: VecDeque<Result<Batch>>,
    mode: Mode,
    /// What kept the epoch from beginning; the first `next` gives it.
    failed: Option<Error>,
}

enum Mode {
    /// The caller of `next` makes the batch.
    Direct(Direct),
    Workers {
        lane: JobLane,
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
                let lane = JobLane::new(crew.queue(), shared.settings.in_order);
                Mode::Workers { lane, crew }
            }
            None => Mode::Direct(Direct::default()),
        };
        let mut iter = Iter {
            shared,
            epoch,
            left: count,
            issued: 0,
            given: 0,
            batches,
            bundles: VecDeque::new(),
            ready: VecDeque::new(),
            mode,
            failed: None,
        };
        iter.read_ahead();
        iter
    }

    /// An iterator that gives this error, and ends.
    pub(super) fn failing(shared: Arc<Shared<D>>, error: Error) -> Self {
        let batches = IndexBatches::new(Box::new(0..0), 0, 1, false, 0);
        Iter {
            shared,
            epoch: u64::MAX,
            left: 1,
            issued: 0,
            given: 0,
            batches,
            bundles: VecDeque::new(),
            ready: VecDeque::new(),
            mode: Mode::Over,
            failed: Some(error),
        }
    }

    /// The epoch's number, from 0: how many iterators the loader made before.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Issues tickets up to the window. With no workers there is none.
    fn read_ahead(&mut self) {
        let Mode::Workers { lane, .. } = &mut self.mode else { return };
        let settings = &self.shared.settings;
        let mut window = self.shared.window();
        if self.given == 0 && settings.in_order {
            // The first batch first: with more workers than CPUs, one that has
            // rows of it would be put aside for those that read ahead. Rows
            // enough for all workers are enough.
            let rows = settings.num_workers.saturating_mul(2);
            window = window.min(rows.div_ceil(settings.batch_size));
        }
        let ahead = usize::try_from(self.issued - self.given).unwrap_or(usize::MAX);
        let mut room = window.saturating_sub(ahead);
        // Not where it is to be said who is late, or where each batch is wanted
        // as soon as it is made.
        if settings.timeout.is_none() && settings.in_order {
            let together = lane.together(settings.batch_size).min(window.div_ceil(2));
            if together > 1 {
                if room >= together {
                    self.issue_bundle(together);
                }
                return;
            }
        }
        while room > 0 {
            let mut indices = Vec::new();
            let (epoch, number) = (self.epoch, self.issued);
            let job = match self.batches.next(&mut indices) {
                None => return,
                Some(Ok(())) => Job::new(epoch, number, indices),
                Some(Err(error)) => Job::failed(epoch, number, error),
            };
            lane.issue(job.rows(), job);
            self.issued += 1;
            room -= 1;
        }
    }

    /// Issues up to `most` batches as one ticket.
    fn issue_bundle(&mut self, most: usize) {
        let Mode::Workers { lane, .. } = &mut self.mode else { return };
        let size = self.shared.settings.batch_size;
        let (epoch, number) = (self.epoch, self.issued);
        let mut indices = Vec::with_capacity(most.saturating_mul(size).min(1 << 16));
        let mut next = Vec::new();
        let mut refused = None;
        for _ in 0..most {
            match self.batches.next(&mut next) {
                None => break,
                Some(Ok(())) => indices.extend_from_slice(&next),
                Some(Err(error)) => {
                    refused = Some(error);
                    break;
                }
            }
            self.issued += 1;
        }
        if !indices.is_empty() {
            let (job, bundle) = Job::bundle(epoch, number, indices, size);
            lane.issue(job.rows(), job);
            self.bundles.push_back(bundle);
        }
        if let Some(error) = refused {
            let job = Job::failed(epoch, self.issued, error);
            lane.issue(job.rows(), job);
            self.issued += 1;
        }
    }

    /// Takes the first bundle, if batch `number` is in it.
    fn bundle_of(&mut self, number: u64) -> Option<Arc<Bundle>> {
        self.bundles.pop_front_if(|bundle| bundle.has(number))
    }

    /// Waits for the workers' next batch.
    fn wait(&mut self) -> Option<Result<Batch>> {
        let mut begun = None;
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Some(batch);
            }
            self.read_ahead();
            let Mode::Workers { lane, crew } = &mut self.mode else { return None };
            let settings = &self.shared.settings;
            let patrols = settings.persistent_workers;
            let slice = match (self.bundles.is_empty(), settings.timeout, patrols) {
                (false, ..) => Some(LATE),
                (true, Some(timeout), true) => Some(timeout.min(PATROL)),
                (true, Some(timeout), false) => Some(timeout),
                (true, None, true) => Some(PATROL),
                (true, None, false) => None,
            };
            match lane.next(slice) {
                Next::Ready(Outcome::Bundle) => {
                    if let Some(bundle) = self.bundles.pop_front() {
                        bundle.take_into(&mut self.ready);
                    }
                    continue;
                }
                Next::Ready(Outcome::One(batch)) => {
                    // In a bundle's place: whoever made it broke down.
                    if let Some(bundle) = self.bundle_of(self.given) {
                        bundle.take_into(&mut self.ready);
                        self.ready.push_back(batch);
                        continue;
                    }
                    return Some(batch);
                }
                Next::Empty => return None,
                Next::TimedOut => {}
            }
            // Something takes long. What a bundle has before it comes now.
            if let Some(bundle) = self.bundles.front().filter(|bundle| bundle.has(self.given)) {
                bundle.take_into(&mut self.ready);
            }
            let slice = slice.unwrap_or_default();
            let waited = begun.get_or_insert_with(|| Instant::now() - slice).elapsed();
            if let Some(timeout) = settings.timeout.filter(|&timeout| waited >= timeout) {
                let number = Some(self.given).filter(|_| settings.in_order);
                return Some(Err(timed_out(crew, self.epoch, number, timeout)));
            }
            if patrols && waited >= PATROL {
                patrol(crew, &self.shared);
            }
        }
    }
}

/// Replaces workers stuck in the samples of an iterator that is gone, and says
/// so.
fn patrol<D: Dataset + 'static>(crew: &Crew, shared: &Arc<Shared<D>>) {
    let live = shared.live.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let stuck = crew.patrol(shared, |epoch| live.contains(&epoch));
    if !stuck.is_empty() {
        shared.warnings().once("stuck", || {
            format!(
                "stuck in the data set, for an iterator that was dropped: {}; other threads have \
                 taken their place",
                stuck.join(", ")
            )
        });
    }
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
            Mode::Workers { .. } => self.wait(),
        };
        match &result {
            None => {
                self.left = 0;
                // The workers of this epoch go home.
                self.mode = Mode::Over;
            }
            // The same batch is still to come.
            Some(Err(error)) if error.is_timeout() => {}
            Some(_) => {
                self.left = self.left.saturating_sub(1);
                self.given += 1;
                // Before the batch is given away: the workers go on while the
                // user is busy with it.
                self.read_ahead();
            }
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
