//! Tickets on their way: issued by an iterator, taken by worker threads in
//! rows, handed over in order.
//!
//! ```text
//! Lane::issue -> [ lane 0: ticket 4 (rows 32..), ticket 5, ... ]  -> Queue::claim -> worker
//!                [ lane 1: ticket 0, ...                       ]
//! Lane::next  <- [ results in ticket order: 2, 3, -, -         ]  <- Finished::deliver <- worker
//! ```
//!
//! Several lanes (one per live iterator) share the workers of a queue, in
//! turn; in a lane, the oldest ticket with rows left comes first. The number
//! of tickets between `issue` and `next` is the lane owner's to bound: that is
//! all the back-pressure there is.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::sync::{Arc, Condvar, Mutex, lock};
use crate::ticket::{Claim, Ticket};

/// The most rows one claim takes: a thread is never long without looking at
/// what is older or cancelled.
const CHUNK: usize = 256;

/// Tickets of several lanes, waiting for workers. Clones are the same queue.
pub struct Queue<T, R>(Arc<Inner<T, R>>);

struct Inner<T, R> {
    state: Mutex<State<T, R>>,
    /// Workers wait here for tickets.
    work: Condvar,
    /// How many threads are meant to take rows: sets the size of a chunk.
    workers: usize,
}

struct State<T, R> {
    lanes: Vec<Pending<T, R>>,
    /// Whose turn it is.
    turn: usize,
    /// Workers waiting on `work`.
    idle: usize,
    closed: bool,
    /// Times a worker found no ticket and had to wait.
    waits: u64,
}

struct Pending<T, R> {
    desk: Arc<Desk<R>>,
    tickets: VecDeque<Arc<Ticket<T, R>>>,
    /// Rows of the first ticket that are taken already.
    cursor: usize,
}

/// Where a lane's results are put, in order.
pub(crate) struct Desk<R> {
    results: Mutex<Results<R>>,
    /// The lane's owner waits here.
    ready: Condvar,
    cancelled: StdArc<AtomicBool>,
}

struct Results<R> {
    /// The places of tickets `first..`.
    by_ticket: VecDeque<Place<R>>,
    first: u64,
    in_order: bool,
    waiting: bool,
}

/// A ticket's place on the desk.
enum Place<R> {
    /// Its rows are being made.
    Making,
    Ready(R),
    /// Handed over before its turn, because order was not asked for.
    Taken,
}

impl<T, R> Queue<T, R> {
    /// An empty queue for so many workers.
    pub fn new(workers: usize) -> Self {
        Queue(Arc::new(Inner {
            state: Mutex::new(State {
                lanes: Vec::new(),
                turn: 0,
                idle: 0,
                closed: false,
                waits: 0,
            }),
            work: Condvar::new(),
            workers: workers.max(1),
        }))
    }

    /// Waits for rows to make. `None`: the queue is closed, or `leave` is set;
    /// the worker goes home.
    pub fn claim(&self, leave: &AtomicBool) -> Option<Claim<T, R>> {
        let mut state = lock(&self.0.state);
        loop {
            if leave.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(claim) = state.take(self.0.workers) {
                return Some(claim);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state.waits += 1;
            state = self.0.work.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
            state.idle -= 1;
        }
    }

    /// No more tickets: workers finish what there is, then `claim` gives `None`.
    pub fn close(&self) {
        lock(&self.0.state).closed = true;
        self.0.work.notify_all();
    }

    /// Wakes workers that wait, so that they look at their `leave`.
    pub fn wake_all(&self) {
        drop(lock(&self.0.state));
        self.0.work.notify_all();
    }

    /// Times a worker found no ticket and had to wait.
    pub fn waits(&self) -> u64 {
        lock(&self.0.state).waits
    }
}

impl<T, R> State<T, R> {
    /// Rows of the oldest ticket of the lane whose turn it is.
    fn take(&mut self, workers: usize) -> Option<Claim<T, R>> {
        let lanes = self.lanes.len();
        let at = (0..lanes)
            .map(|i| (self.turn + i) % lanes)
            .find(|&at| !self.lanes[at].tickets.is_empty())?;
        self.turn = at + 1;
        let lane = &mut self.lanes[at];
        let rows = lane.tickets.front()?.rows;
        let left = rows - lane.cursor;
        // Guided: large chunks first, small ones last, so that threads end a
        // ticket together.
        let chunk = (left / (2 * workers)).clamp(1, CHUNK);
        let start = lane.cursor;
        let ticket = if chunk == left {
            lane.cursor = 0;
            lane.tickets.pop_front()?
        } else {
            lane.cursor += chunk;
            Arc::clone(lane.tickets.front()?)
        };
        // I4: the cursor has passed these rows.
        Some(Claim::new(ticket, start..start + chunk))
    }
}

impl<R> Desk<R> {
    /// Was the lane dropped? Workers stop at their next row.
    pub(crate) fn cancelled(&self) -> &StdArc<AtomicBool> {
        &self.cancelled
    }

    /// Puts down the result of ticket `number`.
    pub(crate) fn deliver(&self, number: u64, result: R) {
        let refused = {
            let mut results = lock(&self.results);
            let at = number.checked_sub(results.first).and_then(|at| usize::try_from(at).ok());
            let in_order = results.in_order;
            match at.and_then(|at| Some((at, results.by_ticket.get_mut(at)?))) {
                Some((at, place)) => {
                    *place = Place::Ready(result);
                    if results.waiting && (at == 0 || !in_order) {
                        results.waiting = false;
                        self.ready.notify_one();
                    }
                    None
                }
                // The lane is gone.
                None => Some(result),
            }
        };
        // Outside the lock: dropping a result gives a slot back.
        drop(refused);
    }
}

/// An iterator's own line of tickets.
///
/// Dropping it cancels them and waits for nobody.
pub struct Lane<T, R> {
    queue: Queue<T, R>,
    desk: Arc<Desk<R>>,
    issued: u64,
    outstanding: usize,
}

/// What [`Lane::next`] came back with.
#[derive(Debug)]
pub enum Next<R> {
    /// A result.
    Ready(R),
    /// The time passed first. The same result can be waited for again.
    TimedOut,
    /// No ticket is outstanding.
    Empty,
}

impl<T, R> Lane<T, R> {
    /// A lane of `queue`. Results come in ticket order, or, if not `in_order`,
    /// as they are there.
    pub fn new(queue: &Queue<T, R>, in_order: bool) -> Self {
        let desk = Arc::new(Desk {
            results: Mutex::new(Results {
                by_ticket: VecDeque::new(),
                first: 0,
                in_order,
                waiting: false,
            }),
            ready: Condvar::new(),
            cancelled: StdArc::new(AtomicBool::new(false)),
        });
        lock(&queue.0.state).lanes.push(Pending {
            desk: Arc::clone(&desk),
            tickets: VecDeque::new(),
            cursor: 0,
        });
        Lane { queue: queue.clone(), desk, issued: 0, outstanding: 0 }
    }

    /// Issues the next ticket: `rows` rows (at least one) to be made with
    /// `payload`.
    pub fn issue(&mut self, rows: usize, payload: T) {
        let ticket = Arc::new(Ticket::new(self.issued, rows.max(1), payload, Arc::clone(&self.desk)));
        lock(&self.desk.results).by_ticket.push_back(Place::Making);
        self.issued += 1;
        self.outstanding += 1;
        let mut state = lock(&self.queue.0.state);
        let desk = &self.desk;
        if let Some(lane) = state.lanes.iter_mut().find(|lane| Arc::ptr_eq(&lane.desk, desk)) {
            lane.tickets.push_back(ticket);
        }
        let idle = state.idle;
        drop(state);
        match (idle, rows) {
            (0, _) => {}
            (_, 1) => self.queue.0.work.notify_one(),
            _ => self.queue.0.work.notify_all(),
        }
    }

    /// Tickets issued and not yet handed over.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Tickets issued so far: the number of the next one.
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// Waits for the next result, for `timeout` at most.
    pub fn next(&mut self, timeout: Option<Duration>) -> Next<R> {
        if self.outstanding == 0 {
            return Next::Empty;
        }
        let mut deadline = None;
        let mut results = lock(&self.desk.results);
        loop {
            if let Some(result) = results.pop() {
                results.waiting = false;
                self.outstanding -= 1;
                return Next::Ready(result);
            }
            results.waiting = true;
            results = match timeout {
                None => self
                    .desk
                    .ready
                    .wait(results)
                    .unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(timeout) => {
                    // The clock is read only when there is something to wait for.
                    let deadline = *deadline.get_or_insert_with(|| Instant::now() + timeout);
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        results.waiting = false;
                        return Next::TimedOut;
                    }
                    self.desk
                        .ready
                        .wait_timeout(results, left)
                        .unwrap_or_else(|poisoned| poisoned.into_inner())
                        .0
                }
            };
        }
    }
}

impl<R> Results<R> {
    /// The result whose turn it is, or any one if order was not asked for.
    fn pop(&mut self) -> Option<R> {
        let mut candidates = self.by_ticket.iter_mut();
        let place = if self.in_order {
            candidates.next()?
        } else {
            candidates.find(|place| matches!(place, Place::Ready(_)))?
        };
        if !matches!(place, Place::Ready(_)) {
            return None;
        }
        let Place::Ready(result) = std::mem::replace(place, Place::Taken) else { return None };
        while let Some(Place::Taken) = self.by_ticket.front() {
            self.by_ticket.pop_front();
            self.first += 1;
        }
        Some(result)
    }
}

impl<T, R> Drop for Lane<T, R> {
    fn drop(&mut self) {
        self.desk.cancelled.store(true, Ordering::Relaxed);
        let pending = {
            let mut state = lock(&self.queue.0.state);
            let at = state.lanes.iter().position(|lane| Arc::ptr_eq(&lane.desk, &self.desk));
            at.map(|at| state.lanes.remove(at))
        };
        let results = std::mem::take(&mut lock(&self.desk.results).by_ticket);
        // Outside the locks: dropping a result gives slots back.
        drop(pending);
        drop(results);
    }
}

impl<T, R> Clone for Queue<T, R> {
    fn clone(&self) -> Self {
        Queue(Arc::clone(&self.0))
    }
}

impl<T, R> fmt::Debug for Queue<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("workers", &self.0.workers).finish_non_exhaustive()
    }
}

impl<T, R> fmt::Debug for Lane<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("issued", &self.issued)
            .field("outstanding", &self.outstanding)
            .finish_non_exhaustive()
    }
}
