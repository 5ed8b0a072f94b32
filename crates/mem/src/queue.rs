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
use std::mem;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::fork::Moment;
use crate::sync::{Arc, Condvar, Mutex, lock};
use crate::ticket::{Claim, Ticket};

const FORKED: &str = "this lane was made before the process was forked, and its workers are in the \
                      parent; make a new one after fork()";

/// A claim should be worth this much work: less, and taking it costs more
/// than making it; more, and a thread is long without looking at what is older.
const CHUNK_NS: usize = 20_000;
/// The most rows a claim takes, as long as it is not known what one costs.
const CHUNK: usize = 256;
/// Waking a thread costs about this much, so that tickets with less work than
/// that are worth it only several at a time.
const WAKE_NS: usize = 5_000;
/// How often a thread looks again before it sleeps, letting others run each
/// time.
const LOOKS: usize = if cfg!(loom) { 0 } else { 20 };

/// Looks out for something that may come very soon: to sleep and be woken costs
/// more than a small batch does. Comes back when it is there, or not.
fn look_out(is_there: impl Fn() -> bool) {
    for _ in 0..LOOKS {
        if is_there() {
            return;
        }
        thread::yield_now();
    }
}

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
    /// Tickets with rows left, for threads that look without the lock. Written
    /// under the lock.
    pending: AtomicUsize,
    /// What a row cost lately, in 1/16 ns; 0: not known. Workers tell
    /// ([`Queue::took`]).
    row_cost: AtomicUsize,
    made: Moment,
}

struct State<T, R> {
    lanes: Vec<Pending<T, R>>,
    /// Whose turn it is.
    turn: usize,
    /// Workers waiting on `work`.
    idle: usize,
    /// Does a worker look out for tickets without waiting? One is enough.
    looking: bool,
    closed: bool,
    /// Times a worker found no ticket and had to wait.
    waits: u64,
}

struct Pending<T, R> {
    desk: Arc<Desk<T, R>>,
    tickets: VecDeque<Arc<Ticket<T, R>>>,
    /// Rows of the first ticket that are taken already.
    cursor: usize,
}

/// Where a lane's results are put, in order.
pub(crate) struct Desk<T, R> {
    results: Mutex<Results<T, R>>,
    /// The lane's owner waits here.
    ready: Condvar,
    /// Is there a result to take? For an owner that looks without the lock.
    there: AtomicBool,
    cancelled: StdArc<AtomicBool>,
    made: Moment,
}

struct Results<T, R> {
    /// In order: the results of tickets `first..`, as far as they are there.
    by_ticket: VecDeque<Option<Delivered<T, R>>>,
    first: u64,
    /// Without order: the results in the order they came.
    by_arrival: VecDeque<Delivered<T, R>>,
    in_order: bool,
    /// The lane is gone: nobody wants results.
    closed: bool,
    /// Does the owner wait for a result that it could take? Set by the owner,
    /// cleared by whoever wakes it.
    waiting: bool,
}

/// A result, with its ticket: so it is freed by the thread that made it, and
/// not by a worker that would wait for that thread's part of the heap.
struct Delivered<T, R>(R, Arc<Ticket<T, R>>);

impl<T, R> Queue<T, R> {
    /// An empty queue for so many workers.
    pub fn new(workers: usize) -> Self {
        Queue(Arc::new(Inner {
            state: Mutex::new(State {
                lanes: Vec::new(),
                turn: 0,
                idle: 0,
                looking: false,
                closed: false,
                waits: 0,
            }),
            work: Condvar::new(),
            workers: workers.max(1),
            pending: AtomicUsize::new(0),
            row_cost: AtomicUsize::new(0),
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
        let mut looked = false;
        loop {
            if leave.load(Ordering::Relaxed) {
                // This worker may be the one that was woken for a ticket.
                if state.idle > 0 && state.lanes.iter().any(|lane| !lane.tickets.is_empty()) {
                    self.0.work.notify_one();
                }
                return None;
            }
            if let Some(claim) = state.take(&self.0) {
                // One wakes the next, as long as there is enough to do: the
                // iterator's thread, which has better to do, wakes only one,
                // and does not find all CPUs taken by those it woke.
                if state.needs_waking() && state.is_worth_another(&self.0) {
                    self.0.work.notify_one();
                }
                return Some(claim);
            }
            if state.closed {
                return None;
            }
            if !mem::replace(&mut looked, true) && !state.looking {
                state.looking = true;
                drop(state);
                look_out(|| self.0.pending.load(Ordering::Relaxed) > 0);
                state = lock(&self.0.state);
                state.looking = false;
                continue;
            }
            looked = false;
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

    /// What so many rows took to make: sets how many are worth a claim, and
    /// what is light. Need not be told of every claim.
    pub fn took(&self, rows: usize, time: Duration) {
        let cost = time.as_nanos() * 16 / rows.max(1) as u128;
        let cost = usize::try_from(cost).unwrap_or(usize::MAX).clamp(1, usize::MAX >> 8);
        let before = self.0.row_cost.load(Ordering::Relaxed);
        // Races lose a figure, which does not matter.
        // Slower and slower is believed step by step: one claim whose thread
        // had to wait for a CPU says nothing of the rows.
        let after = match before {
            0 => cost,
            _ => before - before / 4 + cost.min(before.saturating_mul(4)) / 4,
        };
        self.0.row_cost.store(after.max(1), Ordering::Relaxed);
    }

    /// Is this the process that the queue was made in?
    fn is_here(&self) -> bool {
        self.0.made.same_process()
    }
}

impl<T, R> State<T, R> {
    /// Must a worker be woken for a ticket to be seen? Not if one looks out:
    /// before it sleeps it looks once more, with the lock.
    fn needs_waking(&self) -> bool {
        self.idle > 0 && !self.looking
    }

    /// Is there work for one more thread?
    fn is_worth_another(&self, queue: &Inner<T, R>) -> bool {
        let mut rows = 0usize;
        for lane in &self.lanes {
            for ticket in &lane.tickets {
                rows = rows.saturating_add(ticket.rows);
                if queue.work_ns(rows).is_none_or(|ns| ns >= CHUNK_NS) {
                    return true;
                }
            }
        }
        false
    }

    /// Rows of the oldest ticket of the lane whose turn it is.
    fn take(&mut self, queue: &Inner<T, R>) -> Option<Claim<T, R>> {
        let lanes = self.lanes.len();
        let at = (0..lanes)
            .map(|i| (self.turn + i) % lanes)
            .find(|&at| !self.lanes[at].tickets.is_empty())?;
        self.turn = at + 1;
        let lane = &mut self.lanes[at];
        let rows = lane.tickets.front()?.rows;
        let left = rows - lane.cursor;
        // Guided: large chunks first, small ones last, so that threads end a
        // ticket together; but none smaller than is worth it.
        let guided = left / queue.workers.saturating_mul(2);
        let chunk = match queue.row_cost.load(Ordering::Relaxed) {
            0 => guided.clamp(1, CHUNK),
            cost => {
                let worth = (CHUNK_NS * 16 / cost).max(1);
                guided.clamp(worth, worth.max(CHUNK)).min(left)
            }
        };
        let start = lane.cursor;
        let ticket = if chunk == left {
            lane.cursor = 0;
            queue.pending.fetch_sub(1, Ordering::Relaxed);
            lane.tickets.pop_front()?
        } else {
            lane.cursor += chunk;
            Arc::clone(lane.tickets.front()?)
        };
        // I4: the cursor has passed these rows.
        Some(Claim::new(ticket, start..start + chunk))
    }
}

impl<T, R> Inner<T, R> {
    /// What so many rows take to make, if that is known.
    fn work_ns(&self, rows: usize) -> Option<usize> {
        match self.row_cost.load(Ordering::Relaxed) {
            0 => None,
            cost => Some(rows.saturating_mul(cost) / 16),
        }
    }
}

impl<T, R> Desk<T, R> {
    /// Was the lane dropped? Workers stop at their next row.
    pub(crate) fn cancelled(&self) -> &StdArc<AtomicBool> {
        &self.cancelled
    }

    /// Is this the process that the lane was made in?
    pub(crate) fn is_here(&self) -> bool {
        self.made.same_process()
    }

    /// Puts down the result of `ticket`. In a forked child nobody waits for it,
    /// and the lock may be held for ever.
    pub(crate) fn deliver(&self, ticket: Arc<Ticket<T, R>>, result: R) {
        if !self.is_here() {
            return;
        }
        let refused = {
            let mut results = lock(&self.results);
            if results.closed {
                Some(result)
            } else {
                let awaited = results.put(ticket, result);
                if results.waiting && awaited {
                    results.waiting = false;
                    self.ready.notify_one();
                } else if awaited {
                    self.there.store(true, Ordering::Relaxed);
                }
                None
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
    desk: Arc<Desk<T, R>>,
    /// Results taken from the desk, all that were there, and not yet handed
    /// over.
    taken: VecDeque<Delivered<T, R>>,
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
                by_arrival: VecDeque::new(),
                in_order,
                closed: false,
                waiting: false,
            }),
            ready: Condvar::new(),
            there: AtomicBool::new(false),
            cancelled: StdArc::new(AtomicBool::new(false)),
            made: Moment::now(),
        });
        lock(&queue.0.state).lanes.push(Pending {
            desk: Arc::clone(&desk),
            tickets: VecDeque::new(),
            cursor: 0,
        });
        Lane { queue: queue.clone(), desk, taken: VecDeque::new(), issued: 0, outstanding: 0 }
    }

    /// Issues the next ticket: `rows` rows (at least one) to be made with
    /// `payload`.
    ///
    /// # Panics
    /// In a process forked after the lane was made.
    pub fn issue(&mut self, rows: usize, payload: T) {
        assert!(self.desk.is_here(), "{FORKED}");
        let rows = rows.max(1);
        let ticket = Arc::new(Ticket::new(self.issued, rows, payload, Arc::clone(&self.desk)));
        self.issued += 1;
        self.outstanding += 1;
        let queue = &self.queue.0;
        let mut state = lock(&queue.state);
        let desk = &self.desk;
        if let Some(lane) = state.lanes.iter_mut().find(|lane| Arc::ptr_eq(&lane.desk, desk)) {
            lane.tickets.push_back(ticket);
        }
        queue.pending.fetch_add(1, Ordering::Relaxed);
        let wake = state.needs_waking();
        drop(state);
        // One, which wakes the next if there is enough to do.
        if wake {
            queue.work.notify_one();
        }
    }

    /// How many batches of so many rows are worth one ticket: more than one, if
    /// a batch is less work than waking a thread for it.
    pub fn together(&self, rows: usize) -> usize {
        match self.queue.0.work_ns(rows) {
            Some(ns) if ns < WAKE_NS => CHUNK_NS / ns.max(1),
            _ => 1,
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
        if self.taken.is_empty() && !self.take(timeout) {
            return Next::TimedOut;
        }
        match self.taken.pop_front() {
            Some(Delivered(result, _ticket)) => {
                self.outstanding -= 1;
                Next::Ready(result)
            }
            None => Next::TimedOut,
        }
    }

    /// Takes what is on the desk, waiting till there is something. `false`:
    /// the time passed first.
    fn take(&mut self, timeout: Option<Duration>) -> bool {
        let desk = &*self.desk;
        if lock(&desk.results).take(desk, &mut self.taken) {
            return true;
        }
        // A worker that looked out has taken what it found, and maybe did not
        // find the rest worth waking another for. Before sleeping, it is.
        let queue = &self.queue.0;
        if queue.pending.load(Ordering::Relaxed) > 0 && lock(&queue.state).needs_waking() {
            queue.work.notify_one();
        }
        look_out(|| desk.there.load(Ordering::Relaxed));
        let mut results = lock(&desk.results);
        // The clock is read only when there is something to wait for. None:
        // for ever, also if that long is more than it can say.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if results.take(desk, &mut self.taken) {
                results.waiting = false;
                return true;
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                results.waiting = false;
                return false;
            }
            results.waiting = true;
            results = match left {
                None => desk.ready.wait(results).unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(left) => {
                    desk.ready
                        .wait_timeout(results, left)
                        .unwrap_or_else(|poisoned| poisoned.into_inner())
                        .0
                }
            };
        }
    }
}

impl<T, R> Results<T, R> {
    /// Puts a result in its place. Says whether the owner can take it now.
    fn put(&mut self, ticket: Arc<Ticket<T, R>>, result: R) -> bool {
        let number = ticket.number;
        let delivered = Delivered(result, ticket);
        if !self.in_order {
            self.by_arrival.push_back(delivered);
            return true;
        }
        // A ticket has one result; a second (of a thread that broke down) would
        // come too late.
        let Some(at) = number.checked_sub(self.first).map(|at| at as usize) else { return false };
        if self.by_ticket.len() <= at {
            self.by_ticket.resize_with(at + 1, || None);
        }
        self.by_ticket[at] = Some(delivered);
        at == 0
    }

    /// Moves every result that can be handed over to `taken`. Says whether
    /// there was one.
    fn take(&mut self, desk: &Desk<T, R>, taken: &mut VecDeque<Delivered<T, R>>) -> bool {
        desk.there.store(false, Ordering::Relaxed);
        taken.append(&mut self.by_arrival);
        while let Some(Some(_)) = self.by_ticket.front() {
            self.first += 1;
            taken.extend(self.by_ticket.pop_front().flatten());
        }
        !taken.is_empty()
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
            let pending = at.map(|at| state.lanes.remove(at));
            let tickets = pending.as_ref().map_or(0, |lane| lane.tickets.len());
            self.queue.0.pending.fetch_sub(tickets, Ordering::Relaxed);
            pending
        };
        let results = {
            let mut results = lock(&self.desk.results);
            results.closed = true;
            (mem::take(&mut results.by_ticket), mem::take(&mut results.by_arrival))
        };
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
