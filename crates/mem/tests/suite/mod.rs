//! What every allocator's slots must do: plain functions, run over each of
//! them by `alloc.rs`.

#![cfg(not(loom))]

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use pinfeed_mem::{
    Budget, Grid, HostAlloc, Lane, Next, PARTS, Part, Plan, Pool, Queue, Slot, SlotMut, page_size,
    round_to_pages,
};

pub(crate) type Alloc = Arc<dyn HostAlloc>;

/// Makes a test of each function of the suite, over the allocator given, if
/// there is one. What comes with it is held as long as the test runs.
macro_rules! suite {
    ($module:ident, $alloc:expr, $($name:ident),* $(,)?) => {
        mod $module {
            use super::*;
            $(
                #[test]
                fn $name() {
                    if let Some((alloc, _turn)) = $alloc {
                        suite::$name(&alloc);
                    }
                }
            )*
        }
    };
    ($module:ident, $alloc:expr) => {
        suite!(
            $module, $alloc,
            written_sealed_read_reused,
            exact_sizes,
            no_bytes,
            small_slots_come_in_segments,
            large_slots_come_one_by_one,
            any_order_of_requests,
            threads_have_slots_of_their_own,
            larger_slots_take_the_place_of_smaller_ones,
            trim_and_release,
            slots_outlive_their_pool,
            a_slot_of_its_own,
            locked_as_promised,
            rows_by_many_threads,
            late_results_go_back_at_once,
            what_exceeds_the_budget_is_ordinary,
            forget_a_slot_being_written,
            forget_a_sealed_slot,
            forget_a_claim,
            forget_a_finished_ticket,
            forget_a_lane,
            forget_a_grid,
            forget_a_pool,
        );
    };
}
pub(crate) use suite;

/// Far more than a test takes.
const PLENTY: usize = 1 << 30;

fn pool(alloc: &Alloc, base: usize) -> Pool {
    budgeted(alloc, base, PLENTY).0
}

fn budgeted(alloc: &Alloc, base: usize, budget: usize) -> (Pool, Arc<Budget>) {
    let budget = Arc::new(Budget::of(budget));
    let pool = Pool::new(Arc::clone(alloc), Arc::clone(&budget));
    pool.set_base(base);
    (pool, budget)
}

fn address(slot: &mut SlotMut) -> usize {
    slot.as_mut_slice().as_ptr().addr()
}

/// Nobody uses a slot of this pool, and with its free ones gone it holds
/// nothing.
fn nothing_left(pool: &Pool, budget: &Budget) {
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.asked), (0, 0), "{stats:?}");
    pool.release();
    let stats = pool.stats();
    assert_eq!((stats.slots, stats.reserved, budget.used()), (0, 0, 0), "{stats:?}");
}

pub(crate) fn written_sealed_read_reused(alloc: &Alloc) {
    let (pool, budget) = budgeted(alloc, 1, PLENTY);
    let mut slot = pool.acquire(1000).unwrap();
    let first = address(&mut slot);
    slot.as_mut_slice().copy_from_slice(&[7; 1000]);
    let slot = slot.seal();
    let clone = slot.clone();
    assert_eq!(slot.as_slice(), [7; 1000]);
    // Not back in the pool before the last clone is gone.
    drop(slot);
    assert_eq!(pool.stats().in_use, 1);
    let mut other = pool.acquire(1000).unwrap();
    assert_ne!(address(&mut other), first);
    other.as_mut_slice().fill(9);
    let read = thread::spawn(move || clone.as_slice().iter().all(|&byte| byte == 7));
    assert!(read.join().unwrap());
    let mut again = pool.acquire(900).unwrap();
    assert_eq!(address(&mut again), first, "the slot that came back");
    assert_eq!(again.len(), 900);
    drop((other, again));
    nothing_left(&pool, &budget);
}

pub(crate) fn exact_sizes(alloc: &Alloc) {
    for bytes in [1, 63, 64, 4095, 4096, 4097, 256 << 10, (1 << 20) + 1] {
        let (pool, budget) = budgeted(alloc, 1, PLENTY);
        let mut slot = pool.acquire(bytes).unwrap();
        assert_eq!(slot.len(), bytes);
        assert_eq!(slot.as_mut_slice().len(), bytes);
        assert_eq!(address(&mut slot) % 64, 0);
        slot.as_mut_slice().fill(1);
        let stats = pool.stats();
        // Whole pages, and no powers of two.
        assert_eq!((stats.asked, stats.reserved), (bytes, round_to_pages(bytes)));
        assert_eq!(budget.used(), if alloc.locks() { stats.reserved } else { 0 });
        drop(slot);
        nothing_left(&pool, &budget);
    }
}

pub(crate) fn no_bytes(alloc: &Alloc) {
    let (pool, budget) = budgeted(alloc, 1, 0);
    let mut slot = pool.acquire(0).unwrap();
    assert!(slot.is_empty());
    assert_eq!(slot.as_mut_slice(), []);
    let slot = slot.seal();
    assert_eq!(slot.as_slice(), []);
    assert!(!slot.is_os_locked() && !slot.is_pinned(), "it has no page");
    let stats = pool.stats();
    assert_eq!((stats.slots, stats.in_use, stats.overflowed), (0, 0, 0));
    nothing_left(&pool, &budget);
}

pub(crate) fn small_slots_come_in_segments(alloc: &Alloc) {
    let (pool, budget) = budgeted(alloc, 3, PLENTY);
    let mut slots: Vec<SlotMut> = (0..3).map(|_| pool.acquire(100).unwrap()).collect();
    let stats = pool.stats();
    assert_eq!((stats.slots, stats.reserved, stats.grown), (3, 3 * page_size(), 0));
    let addresses: HashSet<usize> = slots.iter_mut().map(address).collect();
    let first = *addresses.iter().min().unwrap();
    assert_eq!(addresses, (0..3).map(|i| first + i * page_size()).collect(), "one mapping");
    // One more than the base number: counted as growth, three at a time.
    slots.push(pool.acquire(100).unwrap());
    let stats = pool.stats();
    assert_eq!((stats.slots, stats.in_use, stats.grown), (6, 4, 1));
    slots.extend([pool.acquire(100).unwrap(), pool.acquire(100).unwrap()]);
    assert_eq!(pool.stats().grown, 1);
    for (i, slot) in slots.iter_mut().enumerate() {
        slot.as_mut_slice().fill(i as u8);
    }
    for (i, slot) in slots.iter_mut().enumerate() {
        assert_eq!(slot.as_mut_slice(), [i as u8; 100]);
    }
    drop(slots);
    nothing_left(&pool, &budget);
}

pub(crate) fn large_slots_come_one_by_one(alloc: &Alloc) {
    const BYTES: usize = 300 << 10;
    let (pool, budget) = budgeted(alloc, 2, PLENTY);
    let slots: Vec<SlotMut> = (0..3)
        .map(|i| {
            let slot = pool.acquire(BYTES).unwrap();
            let stats = pool.stats();
            assert_eq!((stats.slots, stats.in_use), (i + 1, i + 1));
            assert_eq!(stats.reserved, (i + 1) * round_to_pages(BYTES));
            slot
        })
        .collect();
    assert_eq!(pool.stats().grown, 1, "the third");
    drop(slots);
    nothing_left(&pool, &budget);
}

/// A pseudo-random walk over requests and releases, against a plain list of
/// what is held: no two slots share a byte, and the counters agree.
pub(crate) fn any_order_of_requests(alloc: &Alloc) {
    let (pool, budget) = budgeted(alloc, 4, PLENTY);
    let mut random = Random(1);
    let mut held: Vec<(u8, Slot)> = Vec::new();
    for step in 0..600u32 {
        match random.below(10) {
            0..=4 if held.len() < 12 => {
                let bytes = match random.below(4) {
                    0 => random.below(100),
                    1 => page_size() + random.below(3) - 1,
                    2 => random.below(20_000),
                    _ => random.below(300_000),
                };
                let mut slot = pool.acquire(bytes).unwrap();
                assert_eq!(slot.len(), bytes);
                slot.as_mut_slice().fill(step as u8);
                held.push((step as u8, slot.seal()));
            }
            9 if random.below(10) == 0 => pool.trim(),
            _ if !held.is_empty() => {
                let (value, slot) = held.swap_remove(random.below(held.len()));
                assert!(slot.as_slice().iter().all(|&byte| byte == value));
            }
            _ => {}
        }
        let stats = pool.stats();
        let full = || held.iter().filter(|(_, slot)| !slot.is_empty());
        assert_eq!(stats.in_use, full().count());
        assert_eq!(stats.asked, full().map(|(_, slot)| slot.len()).sum::<usize>());
        assert!(stats.slots >= stats.in_use && stats.reserved >= stats.asked);
        if alloc.locks() {
            assert_eq!(budget.used(), stats.reserved);
        }
    }
    for (value, slot) in held {
        assert!(slot.as_slice().iter().all(|&byte| byte == value));
    }
    nothing_left(&pool, &budget);
}

/// Numbers that look random and are the same each time (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

pub(crate) fn threads_have_slots_of_their_own(alloc: &Alloc) {
    let (pool, budget) = budgeted(alloc, 4, PLENTY);
    thread::scope(|scope| {
        for thread in 0..4u8 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..100 {
                    let bytes = if round % 10 == 0 { 300 << 10 } else { 5000 };
                    let mut slot = pool.acquire(bytes).unwrap();
                    slot.as_mut_slice().fill(thread);
                    let slot = slot.seal();
                    thread::yield_now();
                    assert!(slot.as_slice().iter().all(|&byte| byte == thread));
                }
            });
        }
    });
    // Each thread had one at a time.
    assert!(pool.stats().slots <= 8, "{:?}", pool.stats());
    nothing_left(&pool, &budget);
}

pub(crate) fn larger_slots_take_the_place_of_smaller_ones(alloc: &Alloc) {
    let (pool, budget) = budgeted(alloc, 2, PLENTY);
    let two = |bytes| {
        let slots = [pool.acquire(bytes).unwrap(), pool.acquire(bytes).unwrap()];
        let stats = pool.stats();
        assert_eq!((stats.slots, stats.grown), (2, 0), "two of {bytes}");
        drop(slots);
    };
    two(300 << 10);
    two(400 << 10);
    assert_eq!(pool.stats().reserved, 2 * (400 << 10));
    // Smaller ones again: there are slots for them.
    two(300 << 10);
    assert_eq!(pool.stats().reserved, 2 * (400 << 10));
    nothing_left(&pool, &budget);
}

pub(crate) fn trim_and_release(alloc: &Alloc) {
    const BYTES: usize = 256 << 10;
    let (pool, budget) = budgeted(alloc, 2, PLENTY);
    let mut five: Vec<SlotMut> = (0..5).map(|_| pool.acquire(BYTES).unwrap()).collect();
    let last = address(&mut five[4]);
    drop(five);
    pool.trim();
    assert_eq!(pool.stats().slots, 5, "as many were needed in this epoch");
    pool.trim();
    let stats = pool.stats();
    assert_eq!((stats.slots, stats.reserved), (2, 2 * BYTES), "none were needed in that one");
    let mut slot = pool.acquire(BYTES).unwrap();
    assert_eq!(address(&mut slot), last, "those used last stay");
    pool.trim();
    assert_eq!(pool.stats().slots, 2);
    pool.release();
    let stats = pool.stats();
    assert_eq!((stats.slots, stats.reserved), (1, BYTES), "the one in use");
    drop(slot);
    assert_eq!(pool.stats().slots, 1);
    nothing_left(&pool, &budget);
}

pub(crate) fn slots_outlive_their_pool(alloc: &Alloc) {
    let (pool, budget) = budgeted(alloc, 3, PLENTY);
    let mut written = pool.acquire(100).unwrap();
    let mut sealed = pool.acquire(100).unwrap();
    sealed.as_mut_slice().fill(2);
    let sealed = sealed.seal();
    let large = [pool.acquire(1 << 20).unwrap(), pool.acquire(1 << 20).unwrap()];
    drop(pool);
    written.as_mut_slice().fill(1);
    assert_eq!(written.seal().as_slice(), [1; 100]);
    assert_eq!(sealed.as_slice(), [2; 100]);
    // Nothing is kept for a pool that is gone, whoever else is still there.
    let charged = |bytes| if alloc.locks() { bytes } else { 0 };
    assert_eq!(budget.used(), charged((2 << 20) + 3 * page_size()));
    drop(large);
    assert_eq!(budget.used(), charged(3 * page_size()));
    drop(sealed);
    assert_eq!(budget.used(), 0);
}

pub(crate) fn a_slot_of_its_own(alloc: &Alloc) {
    for bytes in [0, 1, 4097] {
        let mut slot = SlotMut::alone(&**alloc, bytes).unwrap();
        assert_eq!(slot.len(), bytes);
        slot.as_mut_slice().fill(3);
        assert_eq!(slot.seal().as_slice(), vec![3; bytes]);
    }
}

pub(crate) fn locked_as_promised(alloc: &Alloc) {
    let pool = pool(alloc, 2);
    for bytes in [100, 1 << 20] {
        let slot = pool.acquire(bytes).unwrap();
        let lock = slot.lock();
        assert_eq!(lock.os || lock.driver, alloc.locks());
        let slot = slot.seal();
        assert_eq!((slot.is_os_locked(), slot.is_pinned()), (lock.os, lock.driver));
    }
    assert_eq!(pool.stats().locks, alloc.locks());
}

/// Tickets of rows, made by threads in slots of the pool, against what one
/// thread would write.
pub(crate) fn rows_by_many_threads(alloc: &Alloc) {
    const TICKETS: usize = 40;
    let (pool, budget) = budgeted(alloc, 4, PLENTY);
    // A large column, two small ones, one without bytes.
    let row_bytes = [1000, 8, 3, 0];
    let byte =
        |ticket: u64, row: usize, column: usize| (ticket as usize * 31 + row * 7 + column) as u8;
    for in_order in [true, false] {
        let queue = Queue::<usize, (u64, pinfeed_mem::Sealed)>::new(3);
        let mut lane = Lane::new(&queue, in_order);
        thread::scope(|scope| {
            let _close = Close(&queue);
            for _ in 0..3 {
                let (queue, pool) = (queue.clone(), &pool);
                scope.spawn(move || {
                    while let Some(mut claim) = queue.claim(&AtomicBool::new(false)) {
                        assert_eq!(claim.ticket_rows(), *claim.payload());
                        let plan = Arc::new(Plan::new(claim.ticket_rows(), row_bytes).unwrap());
                        claim.lay(|_| Grid::new(plan, |_, bytes| pool.acquire(bytes))).unwrap();
                        let (number, rows) = (claim.number(), claim.rows());
                        for row in rows {
                            let (_, columns) = claim.columns::<Vec<_>>(row..row + 1);
                            for (i, column) in columns.unwrap().into_iter().enumerate() {
                                assert_eq!(column.len(), row_bytes[i]);
                                column.fill(byte(number, row, i));
                            }
                        }
                        if let Some(mut finished) = claim.finish() {
                            let grid = finished.grid.take().unwrap();
                            finished.deliver((number, grid.seal()));
                        }
                    }
                });
            }
            let mut seen = Vec::new();
            let mut take = |lane: &mut Lane<usize, (u64, pinfeed_mem::Sealed)>| {
                let Next::Ready((number, sealed)) = lane.next(None) else { panic!("no batch") };
                let rows = sealed.plan().rows();
                assert_eq!(rows, 1 + number as usize * 13 % 400);
                for (i, column) in sealed.plan().columns().iter().enumerate() {
                    if column.row_bytes == 0 {
                        continue;
                    }
                    let slot = sealed.part(column.part).unwrap();
                    for row in 0..rows {
                        let start = column.offset + row * column.row_bytes;
                        let bytes = &slot.as_slice()[start..start + column.row_bytes];
                        assert!(bytes.iter().all(|&b| b == byte(number, row, i)));
                    }
                }
                seen.push(number);
            };
            for ticket in 0..TICKETS {
                let rows = 1 + ticket * 13 % 400;
                lane.issue(rows, rows);
                if lane.outstanding() == 4 {
                    take(&mut lane);
                }
            }
            while lane.outstanding() > 0 {
                take(&mut lane);
            }
            assert!(matches!(lane.next(None), Next::Empty));
            if !in_order {
                seen.sort_unstable();
            }
            assert_eq!(seen, (0..TICKETS as u64).collect::<Vec<_>>());
        });
    }
    nothing_left(&pool, &budget);
}

/// A lane that is gone keeps no slot, though a claim of it is still out.
pub(crate) fn late_results_go_back_at_once(alloc: &Alloc) {
    let pool = pool(alloc, 2);
    let (queue, mut lane) = queue();
    lane.issue(1, ());
    lane.issue(1, ());
    let [mut first, slow] = [claim(&queue), claim(&queue)];
    write(&mut first, &pool, 1);
    drop(lane);
    assert!(slow.cancelled().load(std::sync::atomic::Ordering::Relaxed));
    let mut finished = first.finish().expect("its only claim");
    let slot = seal(&mut finished);
    assert_eq!(pool.stats().in_use, 1);
    finished.deliver(slot);
    assert_eq!(pool.stats().in_use, 0);
    drop(slow);
}

/// Sends the workers home, also when a test fails: the test waits for them.
struct Close<'a, T, R>(&'a Queue<T, R>);

impl<T, R> Drop for Close<'_, T, R> {
    fn drop(&mut self) {
        self.0.close();
    }
}

pub(crate) fn what_exceeds_the_budget_is_ordinary(alloc: &Alloc) {
    const BYTES: usize = 256 << 10;
    let (pool, budget) = budgeted(alloc, 2, 2 * BYTES);
    let two = [pool.acquire(BYTES).unwrap(), pool.acquire(BYTES).unwrap()];
    let mut third = pool.acquire(BYTES).unwrap();
    assert_eq!(third.len(), BYTES);
    third.as_mut_slice().fill(1);
    let over = pool.acquire(100).unwrap();
    if !alloc.locks() {
        assert_eq!(pool.stats().overflowed, 0, "ordinary memory has no budget");
        return;
    }
    assert_eq!(third.lock(), Default::default());
    let third = third.seal();
    assert!(!third.is_os_locked() && !third.is_pinned());
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.overflowed), (2, 2), "ordinary memory is counted apart");
    assert_eq!(budget.used(), 2 * BYTES);
    drop((third, over));
    // A batch larger than the whole budget moves nobody out.
    drop(two);
    let huge = pool.acquire(3 * BYTES).unwrap();
    assert_eq!((huge.len(), huge.lock()), (3 * BYTES, Default::default()));
    assert_eq!(pool.stats().slots, 2);
    // One that fits does, if what is free is too small for it.
    let larger = pool.acquire(BYTES + 1).unwrap();
    assert_ne!(larger.lock(), Default::default());
    assert_eq!(pool.stats().overflowed, 3);
    drop((huge, larger));
    nothing_left(&pool, &budget);
    // So do as many small ones as fit, when the base number does not.
    let (pool, budget) = budgeted(alloc, 8, page_size());
    let [one, two] = [pool.acquire(100).unwrap(), pool.acquire(100).unwrap()];
    assert_ne!(one.lock(), Default::default());
    assert_eq!(two.lock(), Default::default());
    drop((one, two));
    nothing_left(&pool, &budget);
}

// Forgetting wastes what is forgotten, and only that: everybody else goes on,
// and nobody is ever given what was forgotten.

pub(crate) fn forget_a_slot_being_written(alloc: &Alloc) {
    let pool = pool(alloc, 2);
    let mut slot = pool.acquire(100).unwrap();
    let lost = address(&mut slot);
    mem::forget(slot);
    for _ in 0..10 {
        let mut others = [pool.acquire(100).unwrap(), pool.acquire(100).unwrap()];
        assert!(others.iter_mut().all(|slot| address(slot) != lost));
    }
    pool.trim();
    pool.release();
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.asked), (1, 100));
}

pub(crate) fn forget_a_sealed_slot(alloc: &Alloc) {
    let pool = pool(alloc, 1);
    let mut slot = pool.acquire(1 << 20).unwrap();
    slot.as_mut_slice().fill(5);
    let slot = slot.seal();
    mem::forget(slot.clone());
    let bytes = slot.as_slice();
    for _ in 0..3 {
        pool.acquire(1 << 20).unwrap().as_mut_slice().fill(6);
    }
    assert!(bytes.iter().all(|&byte| byte == 5));
    drop(slot);
    pool.release();
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.slots, stats.reserved), (1, 1, 1 << 20));
}

type Tickets = Queue<(), Slot>;

/// A queue whose worker is the calling thread.
fn queue() -> (Tickets, Lane<(), Slot>) {
    let queue = Tickets::new(1);
    let lane = Lane::new(&queue, true);
    (queue, lane)
}

fn claim(queue: &Tickets) -> pinfeed_mem::Claim<(), Slot> {
    queue.claim(&AtomicBool::new(false)).expect("a ticket was issued")
}

/// Lays a claim out in a slot of the pool, and writes its rows.
fn write(claim: &mut pinfeed_mem::Claim<(), Slot>, pool: &Pool, value: u8) {
    let plan = Arc::new(Plan::new(claim.ticket_rows(), [100]).unwrap());
    claim.lay(|()| Grid::new(plan, |_, bytes| pool.acquire(bytes))).unwrap();
    let rows = claim.rows();
    for column in claim.columns::<Vec<_>>(rows).1.unwrap() {
        column.fill(value);
    }
}

fn seal(finished: &mut pinfeed_mem::Finished<(), Slot>) -> Slot {
    let sealed = finished.grid.take().expect("laid out").seal();
    let mut parts = PARTS.iter().filter_map(|&part| sealed.part(part).cloned());
    parts.next().expect("it has bytes")
}

/// Another lane of the queue still gets its ticket made.
fn others_go_on(queue: &Tickets, pool: &Pool) {
    let mut other = Lane::new(queue, true);
    other.issue(2, ());
    loop {
        let mut claim = claim(queue);
        write(&mut claim, pool, 8);
        if let Some(mut finished) = claim.finish() {
            let slot = seal(&mut finished);
            finished.deliver(slot);
            break;
        }
    }
    let Next::Ready(slot) = other.next(None) else { panic!("no result") };
    assert_eq!(slot.as_slice(), [8; 200]);
}

pub(crate) fn forget_a_claim(alloc: &Alloc) {
    let pool = pool(alloc, 1);
    let (queue, mut lane) = queue();
    lane.issue(2, ());
    let (mut first, mut second) = (claim(&queue), claim(&queue));
    write(&mut first, &pool, 1);
    write(&mut second, &pool, 2);
    mem::forget(first);
    assert!(second.finish().is_none(), "its rows are never all made");
    others_go_on(&queue, &pool);
    assert!(matches!(lane.next(Some(Duration::from_millis(1))), Next::TimedOut));
    assert!(matches!(lane.next(Some(Duration::ZERO)), Next::TimedOut), "and again");
    assert_eq!(lane.outstanding(), 1);
    drop(lane);
    assert_eq!(pool.stats().in_use, 1, "the forgotten claim's slot");
}

pub(crate) fn forget_a_finished_ticket(alloc: &Alloc) {
    let pool = pool(alloc, 1);
    let (queue, mut lane) = queue();
    lane.issue(1, ());
    let mut only = claim(&queue);
    write(&mut only, &pool, 1);
    mem::forget(only.finish().expect("its only claim"));
    others_go_on(&queue, &pool);
    // A later ticket is made, but waits for its turn.
    lane.issue(1, ());
    let mut later = claim(&queue);
    write(&mut later, &pool, 2);
    let mut later = later.finish().expect("its only claim");
    let slot = seal(&mut later);
    later.deliver(slot);
    assert!(matches!(lane.next(Some(Duration::from_millis(1))), Next::TimedOut));
    assert_eq!(lane.outstanding(), 2);
    drop(lane);
    assert_eq!(pool.stats().in_use, 1, "the forgotten ticket's slot");
}

pub(crate) fn forget_a_lane(alloc: &Alloc) {
    let pool = pool(alloc, 1);
    let (queue, mut lane) = queue();
    lane.issue(1, ());
    lane.issue(1, ());
    mem::forget(lane);
    // Its tickets are still made, and lie there.
    for _ in 0..2 {
        let mut only = claim(&queue);
        assert!(!only.cancelled().load(std::sync::atomic::Ordering::Relaxed));
        write(&mut only, &pool, 1);
        let mut finished = only.finish().expect("its only claim");
        let slot = seal(&mut finished);
        finished.deliver(slot);
    }
    others_go_on(&queue, &pool);
    assert_eq!(pool.stats().in_use, 2);
}

pub(crate) fn forget_a_grid(alloc: &Alloc) {
    let pool = pool(alloc, 1);
    let plan = Arc::new(Plan::new(1000, [100, 8]).unwrap());
    let grid = Grid::new(Arc::clone(&plan), |_, bytes| pool.acquire(bytes)).unwrap();
    mem::forget(grid);
    let mut grid = Grid::new(plan, |_, bytes| pool.acquire(bytes)).unwrap();
    grid.columns::<Vec<_>>(0..1000).into_iter().for_each(|column| column.fill(4));
    let sealed = grid.seal();
    assert!(sealed.part(Part::Slab).unwrap().as_slice().iter().all(|&byte| byte == 4));
    drop(sealed);
    assert_eq!(pool.stats().in_use, 2, "one of each part");
}

pub(crate) fn forget_a_pool(alloc: &Alloc) {
    let (pool, budget) = budgeted(alloc, 2, PLENTY);
    let slot = pool.acquire(1 << 20).unwrap();
    let stats = pool.stats();
    mem::forget(pool);
    // It takes the slot back, for nobody.
    drop(slot);
    assert_eq!(budget.used(), if alloc.locks() { stats.reserved } else { 0 });
}
