//! The worker threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::job::{self, JobQueue, Outcome};
use super::maker::Maker;
use super::shared::Shared;
use crate::dataset::{Context, Dataset};
use crate::error::{Error, Kind, Result};

/// Threads that take rows from a queue. Dropping the crew closes the queue and
/// joins nobody: each thread leaves at its next sample.
pub(super) struct Crew {
    queue: JobQueue,
    workers: Mutex<Vec<Worker>>,
}

struct Worker {
    status: Arc<Status>,
    /// Set when another thread has taken its place.
    leave: Arc<AtomicBool>,
    /// What a patrol saw it at, and since when.
    seen: (Place, Instant),
}

/// Epoch, batch, index.
type Place = (u64, u64, usize);

/// What a worker is doing, for messages. Written by the worker without any
/// lock; what is read may be a moment old, which a message can bear.
#[derive(Debug)]
pub(super) struct Status {
    /// The epoch of the batch it has rows of; `IDLE` if it has none.
    epoch: AtomicU64,
    /// The batch's number.
    ticket: AtomicU64,
    /// The index it is at.
    index: Arc<AtomicUsize>,
}

const IDLE: u64 = u64::MAX;

/// A worker that has been in one sample for so long, for nobody, is stuck.
const STUCK: Duration = Duration::from_secs(1);

impl Crew {
    /// Starts the workers.
    ///
    /// # Errors
    /// If the system starts no more threads.
    pub(super) fn start<D: Dataset + 'static>(shared: &Arc<Shared<D>>) -> Result<Arc<Self>> {
        let count = shared.settings.num_workers;
        let crew = Crew { queue: JobQueue::new(count), workers: Mutex::default() };
        let workers: Result<Vec<Worker>> =
            (0..count).map(|number| crew.spawn(number, shared)).collect();
        // An error drops the crew: the threads already started go home.
        *crew.workers.lock().unwrap_or_else(PoisonError::into_inner) = workers?;
        Ok(Arc::new(crew))
    }

    pub(super) fn queue(&self) -> &JobQueue {
        &self.queue
    }

    fn spawn<D: Dataset + 'static>(
        &self,
        number: usize,
        shared: &Arc<Shared<D>>,
    ) -> Result<Worker> {
        let status = Arc::new(Status {
            epoch: AtomicU64::new(IDLE),
            ticket: AtomicU64::new(0),
            index: Arc::default(),
        });
        let leave = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            status: Arc::clone(&status),
            leave: Arc::clone(&leave),
            seen: ((IDLE, 0, 0), Instant::now()),
        };
        let queue = self.queue.clone();
        let shared = Arc::clone(shared);
        thread::Builder::new()
            .name(format!("pinfeed-{number}"))
            .spawn(move || {
                let cx = Context::new(Some(number), Arc::clone(&status.index));
                let mut maker = Maker::new(cx);
                while let Some(claim) = queue.claim(&leave) {
                    let (epoch, ticket) = (claim.payload().epoch, claim.payload().number);
                    status.ticket.store(ticket, Ordering::Relaxed);
                    status.epoch.store(epoch, Ordering::Relaxed);
                    let rescue = claim.rescue();
                    let begun = Instant::now();
                    // User code is caught where it is called. Should a panic get
                    // this far all the same, nobody must wait for the batch.
                    let run = AssertUnwindSafe(|| job::run(claim, &shared, &mut maker));
                    match catch_unwind(run) {
                        Ok(0) => {}
                        Ok(samples) => queue.took(samples, begun.elapsed()),
                        Err(panic) => {
                            let error = Error::from_panic(Kind::Thread, panic);
                            let error = error.at_batch(ticket).at_worker(Some(number));
                            rescue.deliver(Outcome::One(Err(error)));
                        }
                    }
                    status.epoch.store(IDLE, Ordering::Relaxed);
                }
            })
            .map_err(|e| {
                Error::new(Kind::Thread, format!("worker {number} could not be started: {e}"))
                    .with_hint("take fewer workers, or raise the limit on threads (`ulimit -u`)")
            })?;
        Ok(worker)
    }

    /// Replaces workers that are in user code for an iterator that is gone, and
    /// have been in the same sample for long: `is_live` says which
    /// epochs have an iterator. The replaced leave when they come back.
    ///
    /// Returns what they were stuck in.
    pub(super) fn patrol<D: Dataset + 'static>(
        &self,
        shared: &Arc<Shared<D>>,
        is_live: impl Fn(u64) -> bool,
    ) -> Vec<String> {
        let mut stuck = Vec::new();
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, worker) in workers.iter_mut().enumerate() {
            let place = worker.status.place();
            if worker.seen.0 != place {
                worker.seen = (place, Instant::now());
            }
            let long = worker.seen.1.elapsed() >= STUCK;
            if place.0 == IDLE || is_live(place.0) || !long {
                continue;
            }
            // Without another thread the next patrol tries again.
            let Ok(new) = self.spawn(number, shared) else { continue };
            let old = std::mem::replace(worker, new);
            old.leave.store(true, Ordering::Relaxed);
            stuck.push(format!("worker {number} in sample {}", old.status.index()));
        }
        stuck
    }

    /// Who has rows of this batch (of any, if `None`), and where they are.
    pub(super) fn busy_with(&self, epoch: u64, ticket: Option<u64>) -> Vec<(usize, usize)> {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let at = workers.iter().map(|worker| worker.status.place()).enumerate();
        at.filter(|(_, seen)| seen.0 == epoch && ticket.is_none_or(|ticket| seen.1 == ticket))
            .map(|(number, seen)| (number, seen.2))
            .collect()
    }
}

impl Status {
    fn place(&self) -> Place {
        let epoch = self.epoch.load(Ordering::Relaxed);
        (epoch, self.ticket.load(Ordering::Relaxed), self.index())
    }

    fn index(&self) -> usize {
        self.index.load(Ordering::Relaxed)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for worker in self.workers.get_mut().unwrap_or_else(PoisonError::into_inner) {
            worker.leave.store(true, Ordering::Relaxed);
        }
        self.queue.close();
    }
}
