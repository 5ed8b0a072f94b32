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

use crate::fork::Moment;
use crate::sync::{Arc, Condvar, Mutex, lock};
use crate::ticket::{Claim, Ticket};

const FORKED: &str = "this lane was made before the process was forked, and its workers are in the \
                      parent; make a new one after fork()";

/// The most rows one claim takes: a thread is never long without looking at
/// what is older or cancelled.
const CHUNK: usize = 256;

/// Tickets of several lanes, waiting for workers. Clones are the same queue.
///
/// In a process forked after it was made it is closed and empty: the workers,
/// and perhaps its lock, are with the parent. Dropping it, or a lane, is fine.
pub struct Queue<T, R>(Arc<Inner<T, R>>);

struct Inner<T, R> {
    state: Mutex<State<T, R>>,
    /// Workers wait here for tickets.
    work: Condvar,
    /// How many threads are meant to take rows: sets the size of a chunk.
    workers: usize,
    made: Moment,
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
    made: Moment,
}

struct Results<R> {
    /// The places of tickets `first..`.
    by_ticket: VecDeque<Place<R>>,
    first: u64,
    in_order: bool,
    /// Does the owner wait for a result that it could take? Set by the owner,
    /// cleared by whoever wakes it.
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
            made: Moment::now(),
        }))
    }

    /// Waits for rows to make. `None`: the queue is closed, or `leave` is set;
    /// the worker goes home.
    ///
    /// Who sets the `leave` of a worker that may be waiting calls
    /// [`wake_all`](Queue::wake_all) after.
    pub fn claim(&self, leave: &AtomicBool) -> Option<Claim<T, R>> {
        if !self.is_here() {
            return None;
        }
        let mut state = lock(&self.0.state);
        loop {
            if leave.load(Ordering::Relaxed) {
                // This worker may be the one that was woken for a ticket.
                if state.idle > 0 && state.lanes.iter().any(|lane| !lane.tickets.is_empty()) {
                    self.0.work.notify_one();
                }
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
    /// A ticket issued after may find nobody to make it.
    pub fn close(&self) {
        if !self.is_here() {
            return;
        }
        lock(&self.0.state).closed = true;
        self.0.work.notify_all();
    }

    /// Wakes workers that wait, so that they look at their `leave`.
    pub fn wake_all(&self) {
        if !self.is_here() {
            return;
        }
        // A worker that looked at its `leave` before it was set holds the lock
        // until it waits.
        drop(lock(&self.0.state));
        self.0.work.notify_all();
    }

    /// Times a worker found no ticket and had to wait.
    pub fn waits(&self) -> u64 {
        if self.is_here() { lock(&self.0.state).waits } else { 0 }
    }

    /// Is this the process that the queue was made in?
    fn is_here(&self) -> bool {
        self.0.made.same_process()
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
        let chunk = (left / workers.saturating_mul(2)).clamp(1, CHUNK);
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

    /// Is this the process that the lane was made in?
    pub(crate) fn is_here(&self) -> bool {
        self.made.same_process()
    }

    /// Puts down the result of ticket `number`. In a forked child nobody waits
    /// for it, and the lock may be held for ever.
    pub(crate) fn deliver(&self, number: u64, result: R) {
        if !self.is_here() {
            return;
        }
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
    ///
    /// # Panics
    /// In a process forked after the queue was made. So do [`issue`](Lane::issue)
    /// and [`next`](Lane::next), for a lane: rather that than to wait for ever.
    pub fn new(queue: &Queue<T, R>, in_order: bool) -> Self {
        assert!(queue.is_here(), "{FORKED}");
        let desk = Arc::new(Desk {
            results: Mutex::new(Results {
                by_ticket: VecDeque::new(),
                first: 0,
                in_order,
                waiting: false,
            }),
            ready: Condvar::new(),
            cancelled: StdArc::new(AtomicBool::new(false)),
            made: Moment::now(),
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
    ///
    /// # Panics
    /// In a process forked after the lane was made.
    pub fn issue(&mut self, rows: usize, payload: T) {
        assert!(self.desk.is_here(), "{FORKED}");
        let ticket =
            Arc::new(Ticket::new(self.issued, rows.max(1), payload, Arc::clone(&self.desk)));
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
    ///
    /// # Panics
    /// In a process forked after the lane was made.
    pub fn next(&mut self, timeout: Option<Duration>) -> Next<R> {
        assert!(self.desk.is_here(), "{FORKED}");
        if self.outstanding == 0 {
            return Next::Empty;
        }
        let mut results = lock(&self.desk.results);
        let result = match results.pop() {
            Some(result) => result,
            None => {
                // The clock is read only when there is something to wait for.
                // None: for ever, also if that long is more than it can say.
                let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
                loop {
                    let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
                    if left == Some(Duration::ZERO) {
                        results.waiting = false;
                        return Next::TimedOut;
                    }
                    results.waiting = true;
                    let ready = &self.desk.ready;
                    results = match left {
                        None => {
                            ready.wait(results).unwrap_or_else(|poisoned| poisoned.into_inner())
                        }
                        Some(left) => {
                            ready
                                .wait_timeout(results, left)
                                .unwrap_or_else(|poisoned| poisoned.into_inner())
                                .0
                        }
                    };
                    if let Some(result) = results.pop() {
                        results.waiting = false;
                        break result;
                    }
                }
            }
        };
        drop(results);
        self.outstanding -= 1;
        Next::Ready(result)
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
        if !self.desk.is_here() {
            // The locks may be held for ever by threads that are not here.
            return;
        }
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
