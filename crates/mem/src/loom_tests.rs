//! Models: loom runs each in every order that its threads may take, with every
//! value that weak ordering lets a load see. `ci/loom.sh` runs them.
//!
//! Atomics of the standard library (`leave`, the hints in `queue.rs`, all of
//! `fork.rs`) take no part in that: they order nothing that another thread
//! reads, and what they say may be old.
//!
//! A cell of loom's stands for memory that only one thread may use at a time:
//! two uses without an order between them fail the model. What no lock and no
//! atomic orders shows up there, also where the real program would get away
//! with it on this machine.

use std::collections::HashSet;
use std::sync::Arc as StdArc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::sync::Arc;
use crate::{
    Budget, Claim, Finished, Grid, Lane, Next, PARTS, Pageable, Plan, Pool, Queue, SlotMut,
};

/// Explores a model, whole.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    loom::model::Builder::new().check(model);
}

/// Explores a model that is too large for that: with so many preemptions at
/// most. Few bugs need more than two.
fn explore_within(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// A ticket's payload: one cell per row, for what its maker writes.
struct Rows(Vec<UnsafeCell<usize>>);

// SAFETY: on purpose no more than a claim that loom checks: each use of a cell
// goes by `with` or `with_mut`, and loom fails the model if two are unordered.
unsafe impl Sync for Rows {}

impl Rows {
    fn new(rows: usize) -> Self {
        Rows((0..rows).map(|_| UnsafeCell::new(0)).collect())
    }

    /// As the maker of a row does.
    fn write(&self, row: usize) {
        self.0[row].with_mut(|cell| {
            // SAFETY: loom has just checked that nobody else uses the cell.
            unsafe { *cell += row + 1 }
        });
    }

    /// As the last of a ticket does, by then alone. Each row was made once.
    fn check(&self) {
        for (row, cell) in self.0.iter().enumerate() {
            // SAFETY: loom has just checked that nobody writes the cell.
            let value = cell.with(|cell| unsafe { *cell });
            assert_eq!(value, row + 1, "row {row} was not made just once");
        }
    }
}

type Tickets = Queue<Rows, u64>;

/// A worker: makes what rows it is given till the queue closes; with the last
/// of a ticket, delivers its number. Returns how many rows it made.
fn work(queue: &Tickets) -> usize {
    let stay = AtomicBool::new(false);
    let mut made = 0;
    while let Some(claim) = queue.claim(&stay) {
        made += claim.rows().len();
        if let Some(finished) = make(claim) {
            finished.payload().check();
            let number = finished.number();
            finished.deliver(number);
        }
    }
    made
}

fn make(claim: Claim<Rows, u64>) -> Option<Finished<Rows, u64>> {
    for row in claim.rows() {
        claim.payload().write(row);
    }
    claim.finish()
}

fn next(lane: &mut Lane<Rows, u64>) -> u64 {
    match lane.next(None) {
        Next::Ready(number) => number,
        other => panic!("no result but {other:?}"),
    }
}

fn pool(base: usize) -> Pool {
    let pool = Pool::new(StdArc::new(Pageable), StdArc::new(Budget::of(0)));
    pool.set_base(base);
    pool
}

fn address(slot: &mut SlotMut) -> usize {
    slot.as_mut_slice().as_ptr().addr()
}

// ---------------------------------------------------------------- the pool

/// A slot is in one thread's hands at a time, and its next user is ordered
/// after the last. A cell per address stands for the slot's bytes.
fn slots_are_apart(base: usize, bytes: usize) {
    explore(move || {
        let pool = Arc::new(pool(base));
        // The slots that can be are made beforehand, so that their addresses
        // are known: their cells must be there before the threads are.
        let mut first: Vec<SlotMut> = (0..2).map(|_| pool.acquire(bytes).unwrap()).collect();
        let cells: Vec<(usize, UnsafeCell<usize>)> =
            first.iter_mut().map(|slot| (address(slot), UnsafeCell::new(0))).collect();
        assert_ne!(cells[0].0, cells[1].0);
        let cells = StdArc::new(Cells(cells));
        // One is free; the other is given back by one of the threads.
        let held = first.pop().unwrap();
        drop(first);
        let user = |held: Option<SlotMut>| {
            let (pool, cells) = (Arc::clone(&pool), StdArc::clone(&cells));
            move || {
                if let Some(mut held) = held {
                    cells.write(address(&mut held));
                    drop(held.seal());
                }
                let mut slot = pool.acquire(bytes).unwrap();
                cells.write(address(&mut slot));
                drop(slot);
            }
        };
        let other = thread::spawn(user(Some(held)));
        user(None)();
        other.join().unwrap();
        let stats = pool.stats();
        assert_eq!((stats.in_use, stats.asked), (0, 0));
        assert_eq!((stats.slots, stats.grown), (2, u64::from(base < 2)));
    });
}

struct Cells(Vec<(usize, UnsafeCell<usize>)>);

// SAFETY: as `Rows`: loom checks every use.
unsafe impl Sync for Cells {}

impl Cells {
    fn write(&self, address: usize) {
        let (_, cell) = self.0.iter().find(|(at, _)| *at == address).expect("an unknown slot");
        // SAFETY: loom has just checked that nobody else uses the cell.
        cell.with_mut(|cell| unsafe { *cell += 1 });
    }
}

#[test]
fn loom_pool_slots_of_a_segment_are_apart() {
    slots_are_apart(2, 64);
}

#[test]
fn loom_pool_lone_slots_are_apart() {
    slots_are_apart(2, 256 << 10);
}

/// Two threads that find the pool empty get two slots of one making, not two
/// makings of two.
#[test]
fn loom_pool_small_slots_are_made_once() {
    explore(|| {
        let pool = Arc::new(pool(2));
        let other = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.acquire(64).unwrap())
        };
        let mut mine = pool.acquire(64).unwrap();
        let mut theirs = other.join().unwrap();
        assert_eq!(address(&mut mine).abs_diff(address(&mut theirs)), crate::page_size());
        let stats = pool.stats();
        assert_eq!((stats.slots, stats.in_use, stats.grown), (2, 2, 0));
        drop((mine, theirs));
        pool.release();
        let stats = pool.stats();
        assert_eq!((stats.slots, stats.reserved, stats.in_use, stats.asked), (0, 0, 0, 0));
    });
}

/// The pool goes while a slot is in use: nothing is left behind. (Loom counts
/// every `Arc` that is still there at the end as a failure.)
#[test]
fn loom_pool_dropped_while_a_slot_comes_back() {
    explore(|| {
        let pool = pool(2);
        let slot = pool.acquire(64).unwrap().seal();
        let clone = slot.clone();
        let user = thread::spawn(move || drop(clone));
        drop(slot);
        drop(pool);
        user.join().unwrap();
    });
}

// ----------------------------------------------------- claims and tickets

/// Two workers share a ticket; its rows are made once, and the last sees them
/// all. No memory is laid out, so that nothing but the count of rows orders
/// the one after the other.
#[test]
fn loom_claims_last_sees_all_rows() {
    explore(|| {
        let queue = Tickets::new(1);
        let mut lane = Lane::new(&queue, true);
        lane.issue(2, Rows::new(2));
        let stay = AtomicBool::new(false);
        // Chunks of one row each.
        let first = queue.claim(&stay).unwrap();
        let second = queue.claim(&stay).unwrap();
        assert_eq!((first.rows(), second.rows()), (0..1, 1..2));
        let end = |claim| {
            move || {
                if let Some(finished) = make(claim) {
                    assert!(finished.grid.is_none());
                    finished.payload().check();
                    finished.deliver(7);
                    return true;
                }
                false
            }
        };
        let other = thread::spawn(end(first));
        let mine = end(second)();
        let theirs = other.join().unwrap();
        assert!(mine != theirs, "one of them is the last");
        assert_eq!(next(&mut lane), 7);
    });
}

/// Two workers lay a ticket out (once), write its memory, and the last has it
/// alone: `finish` panics if it has not.
#[test]
fn loom_claims_last_has_the_grid_alone() {
    explore(|| {
        let queue = Tickets::new(1);
        let mut lane = Lane::new(&queue, true);
        lane.issue(2, Rows::new(2));
        let stay = AtomicBool::new(false);
        let laid = StdArc::new(loom::sync::atomic::AtomicUsize::new(0));
        let worker = |mut claim: Claim<Rows, u64>| {
            let laid = StdArc::clone(&laid);
            move || {
                let plan = StdArc::new(Plan::new(2, [3]).unwrap());
                let lay = |_: &Rows| {
                    laid.fetch_add(1, loom::sync::atomic::Ordering::Relaxed);
                    Grid::new(plan, |_, bytes| SlotMut::alone(&Pageable, bytes))
                };
                claim.lay(lay).unwrap();
                let rows = claim.rows();
                let (payload, columns) = claim.columns::<Vec<_>>(rows.clone());
                payload.write(rows.start);
                for column in columns.expect("just laid out") {
                    column.fill(rows.start as u8 + 1);
                }
                let Some(finished) = claim.finish() else { return };
                finished.payload().check();
                let mut finished = finished;
                let sealed = finished.grid.take().expect("laid out above").seal();
                let bytes: Vec<&[u8]> =
                    PARTS.iter().filter_map(|&part| Some(sealed.part(part)?.as_slice())).collect();
                assert_eq!(bytes, [[1, 1, 1, 2, 2, 2]]);
                finished.deliver(7);
            }
        };
        let (first, second) = (queue.claim(&stay).unwrap(), queue.claim(&stay).unwrap());
        let other = thread::spawn(worker(first));
        worker(second)();
        other.join().unwrap();
        assert_eq!(next(&mut lane), 7);
        assert_eq!(laid.load(loom::sync::atomic::Ordering::Relaxed), 1);
    });
}

/// Two workers at the queue itself: the claims they get are disjoint and
/// whole, whoever comes first.
#[test]
fn loom_claims_are_disjoint() {
    explore(|| {
        let queue = Tickets::new(2);
        let mut lane = Lane::new(&queue, true);
        lane.issue(3, Rows::new(3));
        queue.close();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || work(&queue))
        };
        let mine = work(&queue);
        assert_eq!(mine + other.join().unwrap(), 3);
        assert_eq!(next(&mut lane), 0);
    });
}

// ------------------------------------------------------------ handing over

/// The owner waits, a worker delivers: no wake-up is lost. A lost one would be
/// a deadlock, which loom reports.
#[test]
fn loom_next_against_deliver() {
    for in_order in [true, false] {
        explore(move || {
            let queue = Tickets::new(1);
            let mut lane = Lane::new(&queue, in_order);
            lane.issue(1, Rows::new(1));
            lane.issue(1, Rows::new(1));
            let worker = {
                let queue = queue.clone();
                thread::spawn(move || work(&queue))
            };
            assert_eq!([next(&mut lane), next(&mut lane)], [0, 1]);
            assert!(matches!(lane.next(None), Next::Empty));
            queue.close();
            assert_eq!(worker.join().unwrap(), 2);
        });
    }
}

/// Two workers end two tickets in any order: in order they come as issued,
/// else as they are there, each once.
#[test]
fn loom_two_deliver_in_any_order() {
    for in_order in [true, false] {
        explore(move || {
            let queue = Tickets::new(2);
            let mut lane = Lane::new(&queue, in_order);
            lane.issue(1, Rows::new(1));
            lane.issue(1, Rows::new(1));
            let stay = AtomicBool::new(false);
            let claims = [queue.claim(&stay).unwrap(), queue.claim(&stay).unwrap()];
            let workers = claims.map(|claim| {
                thread::spawn(move || {
                    let finished = make(claim).expect("its only claim");
                    let number = finished.number();
                    finished.deliver(number);
                })
            });
            let got = [next(&mut lane), next(&mut lane)];
            if in_order {
                assert_eq!(got, [0, 1]);
            } else {
                assert_eq!(HashSet::from(got).len(), 2, "each once");
            }
            for worker in workers {
                worker.join().unwrap();
            }
        });
    }
}

/// Out of order, the owner hears of a later ticket although the first is still
/// being made.
#[test]
fn loom_unordered_does_not_wait_for_the_first() {
    explore(|| {
        let queue = Tickets::new(1);
        let mut lane = Lane::new(&queue, false);
        lane.issue(1, Rows::new(1));
        lane.issue(1, Rows::new(1));
        let slow = queue.claim(&AtomicBool::new(false)).unwrap();
        let worker = {
            let queue = queue.clone();
            thread::spawn(move || work(&queue))
        };
        assert_eq!(next(&mut lane), 1);
        make_and_deliver(slow).expect("its only claim");
        assert_eq!(next(&mut lane), 0);
        queue.close();
        assert_eq!(worker.join().unwrap(), 1);
    });
}

/// The lane goes while a worker has rows of it: the worker ends, and what it
/// delivers is dropped. (Loom counts what is left behind.)
#[test]
fn loom_lane_dropped_while_claimed() {
    explore(|| {
        let queue = Tickets::new(1);
        let mut lane = Lane::new(&queue, true);
        lane.issue(2, Rows::new(2));
        let worker = {
            let queue = queue.clone();
            thread::spawn(move || work(&queue))
        };
        drop(lane);
        queue.close();
        assert!(worker.join().unwrap() <= 2);
    });
}

/// Results that are slots of a pool come back to it, whether the owner took
/// them, left them, or they came too late.
#[test]
fn loom_lane_dropped_gives_slots_back() {
    explore(|| {
        let pool = pool(1);
        let queue = Queue::<(), crate::Slot>::new(1);
        let mut lane = Lane::new(&queue, true);
        lane.issue(1, ());
        let claim = queue.claim(&AtomicBool::new(false)).unwrap();
        let slot = pool.acquire(64).unwrap();
        let worker = thread::spawn(move || {
            claim.finish().expect("its only claim").deliver(slot.seal());
        });
        drop(lane);
        worker.join().unwrap();
        assert_eq!(pool.stats().in_use, 0);
    });
}

/// Tickets that are not worth a wake-up each are made all the same, by the
/// time their owner waits for them.
#[test]
fn loom_light_tickets_are_made() {
    for in_order in [true, false] {
        explore_within(3, move || {
            let queue = Tickets::new(1);
            queue.took(1, Duration::from_nanos(1));
            let mut lane = Lane::new(&queue, in_order);
            assert!(lane.together(1) > 1);
            let worker = {
                let queue = queue.clone();
                thread::spawn(move || work(&queue))
            };
            for _ in 0..3 {
                lane.issue(1, Rows::new(1));
            }
            assert_eq!([next(&mut lane), next(&mut lane), next(&mut lane)], [0, 1, 2]);
            queue.close();
            assert_eq!(worker.join().unwrap(), 3);
        });
    }
}

/// A ticket is made while its owner has other things to do than to wait for
/// it: reading ahead is what it is for.
#[test]
fn loom_issue_wakes_a_worker() {
    explore(|| {
        let queue = Tickets::new(1);
        let worker = {
            let queue = queue.clone();
            thread::spawn(move || {
                let claim = queue.claim(&AtomicBool::new(false)).expect("a ticket");
                make_and_deliver(claim).expect("its only claim");
            })
        };
        let mut lane = Lane::new(&queue, true);
        lane.issue(1, Rows::new(1));
        worker.join().unwrap();
        assert_eq!(next(&mut lane), 0);
    });
}

/// One ticket, one wake-up, and rows for two: the second worker hears of it
/// too.
#[test]
fn loom_one_worker_wakes_the_next() {
    explore(|| {
        let queue = Tickets::new(1);
        let workers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || {
                let claim = queue.claim(&AtomicBool::new(false)).expect("a row each");
                assert_eq!(claim.rows().len(), 1);
                make_and_deliver(claim);
            })
        });
        let mut lane = Lane::new(&queue, true);
        lane.issue(2, Rows::new(2));
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(next(&mut lane), 0);
    });
}

// ------------------------------------------------------------- going home

/// Workers that wait go home when the queue is closed.
#[test]
fn loom_close_while_workers_wait() {
    explore(|| {
        let queue = Tickets::new(2);
        let workers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || work(&queue))
        });
        queue.close();
        for worker in workers {
            assert_eq!(worker.join().unwrap(), 0);
        }
    });
}

/// A ticket that was issued before the queue was closed is made.
#[test]
fn loom_close_after_issue() {
    explore(|| {
        let queue = Tickets::new(1);
        let worker = {
            let queue = queue.clone();
            thread::spawn(move || work(&queue))
        };
        let mut lane = Lane::new(&queue, true);
        lane.issue(1, Rows::new(1));
        queue.close();
        assert_eq!(next(&mut lane), 0);
        assert_eq!(worker.join().unwrap(), 1);
    });
}

/// A worker that is told to leave may be the one that is woken for a ticket:
/// the other must hear of it.
#[test]
fn loom_leave_passes_the_wake_up_on() {
    explore(|| {
        let queue = Tickets::new(2);
        let leave = StdArc::new(AtomicBool::new(false));
        let leaver = {
            let (queue, leave) = (queue.clone(), StdArc::clone(&leave));
            thread::spawn(move || assert!(queue.claim(&leave).is_none()))
        };
        let stayer = {
            let queue = queue.clone();
            thread::spawn(move || {
                let claim = queue.claim(&AtomicBool::new(false)).expect("a ticket");
                make_and_deliver(claim).expect("its only claim");
            })
        };
        let mut lane = Lane::new(&queue, true);
        // On purpose without `wake_all` before the ticket is made: till then
        // the leaver learns of it only if the ticket's wake-up finds it.
        leave.store(true, std::sync::atomic::Ordering::Relaxed);
        lane.issue(1, Rows::new(1));
        stayer.join().unwrap();
        queue.wake_all();
        leaver.join().unwrap();
        assert_eq!(next(&mut lane), 0);
    });
}

/// Told to leave and woken, a worker that waits leaves.
#[test]
fn loom_wake_all_against_wait() {
    explore(|| {
        let queue = Tickets::new(1);
        let leave = StdArc::new(AtomicBool::new(false));
        let worker = {
            let (queue, leave) = (queue.clone(), StdArc::clone(&leave));
            thread::spawn(move || assert!(queue.claim(&leave).is_none()))
        };
        leave.store(true, std::sync::atomic::Ordering::Relaxed);
        queue.wake_all();
        worker.join().unwrap();
    });
}

fn make_and_deliver(claim: Claim<Rows, u64>) -> Option<()> {
    let finished = make(claim)?;
    let number = finished.number();
    finished.deliver(number);
    Some(())
}

// ---------------------------------------------------------- the whole path

/// Two workers make the rows of two tickets in slots of a pool; the owner
/// reads each result and gives its slot back while the other is being made. A
/// third ticket is issued then, and may get that slot.
fn the_whole_path(rows: usize, preemptions: usize) {
    type Tickets = Queue<Rows, crate::Sealed>;

    fn work(queue: &Tickets, pool: &Pool) {
        while let Some(mut claim) = queue.claim(&AtomicBool::new(false)) {
            let plan = StdArc::new(Plan::new(claim.ticket_rows(), [1]).unwrap());
            claim.lay(|_| Grid::new(plan, |_, bytes| pool.acquire(bytes))).unwrap();
            let rows = claim.rows();
            let (payload, columns) = claim.columns::<Vec<_>>(rows.clone());
            for (row, byte) in rows.zip(columns.unwrap().remove(0)) {
                payload.write(row);
                *byte = row as u8 + 1;
            }
            if let Some(mut finished) = claim.finish() {
                finished.payload().check();
                let grid = finished.grid.take().unwrap();
                finished.deliver(grid.seal());
            }
        }
    }

    fn next(lane: &mut Lane<Rows, crate::Sealed>, rows: usize) {
        let Next::Ready(sealed) = lane.next(None) else { panic!("no result") };
        let bytes = sealed.part(crate::Part::Small).unwrap().as_slice();
        assert!(bytes.iter().copied().eq((0..rows).map(|row| row as u8 + 1)));
    }

    explore_within(preemptions, move || {
        let pool = Arc::new(pool(2));
        let queue = Tickets::new(1);
        let workers = [(); 2].map(|()| {
            let (queue, pool) = (queue.clone(), Arc::clone(&pool));
            thread::spawn(move || work(&queue, &pool))
        });
        let mut lane = Lane::new(&queue, true);
        lane.issue(rows, Rows::new(rows));
        lane.issue(rows, Rows::new(rows));
        next(&mut lane, rows);
        lane.issue(rows, Rows::new(rows));
        next(&mut lane, rows);
        next(&mut lane, rows);
        queue.close();
        for worker in workers {
            worker.join().unwrap();
        }
        let stats = pool.stats();
        assert_eq!((stats.in_use, stats.asked), (0, 0));
        assert!(stats.slots <= 2, "two tickets at a time at the most");
    });
}

/// Tickets of two rows: claims share a grid.
#[test]
fn loom_the_whole_path_of_shared_tickets() {
    the_whole_path(2, 2);
}

/// Tickets of one row: a claim has the grid for itself.
#[test]
fn loom_the_whole_path_of_lone_claims() {
    the_whole_path(1, 2);
}
