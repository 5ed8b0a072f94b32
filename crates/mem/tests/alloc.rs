//! The suite over every allocator, and what becomes of their failures.

#![cfg(not(loom))]

mod suite;

use std::io::{self, Write};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinfeed_mem::{
    Block, Budget, Error, HostAlloc, Lock, PageLock, Pageable, Pool, Result, SlotMut, page_size,
};
use suite::{Alloc, suite};

suite!(pageable, Some((Arc::new(Pageable) as Alloc, ())));
suite!(page_lock, page_lock_allocator());
suite!(shared, Some((Arc::new(Shared) as Alloc, ())));
suite!(ledger, Some((Arc::new(Ledger::default()) as Alloc, ())));

/// One test at a time, so that all of them do with the usual limit: each locks
/// up to about 4 MiB, and what is forgotten on purpose is 3 MiB in all.
fn page_lock_allocator() -> Option<(Alloc, MutexGuard<'static, ()>)> {
    static TURN: Mutex<()> = Mutex::new(());
    const NEEDED: u64 = 8 << 20;
    match pinfeed_mem::lock_limit() {
        Some(limit) if limit < NEEDED => {
            skip(&format!("RLIMIT_MEMLOCK is {limit} bytes, and the suite needs {NEEDED}"));
            None
        }
        _ => Some((Arc::new(PageLock), TURN.lock().unwrap_or_else(PoisonError::into_inner))),
    }
}

/// Says so past the test harness, which shows only what failed.
fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("?").to_owned();
    _ = writeln!(io::stderr(), "{name}: skipped: {reason}");
}

/// Shared mappings that nobody locks.
#[derive(Debug)]
struct Shared;

impl HostAlloc for Shared {
    fn alloc(&self, bytes: usize) -> Result<Block> {
        Block::shared(bytes)
    }

    fn locks(&self) -> bool {
        false
    }
}

/// A stranger's memory, written down: each block is given back once, as long
/// as it was handed out, and what is beyond it is left alone. Says that the
/// driver locks it, which nothing here acts upon.
#[derive(Debug, Default)]
struct Ledger {
    out: Arc<Mutex<Vec<(usize, usize)>>>,
}

impl HostAlloc for Ledger {
    fn alloc(&self, bytes: usize) -> Result<Block> {
        const GUARD: u8 = 0xa5;
        // Dirty, and a guard behind it.
        let layout = std::alloc::Layout::from_size_align(bytes + 128, 64).unwrap();
        // SAFETY: the layout's size is not zero.
        let base = NonNull::new(unsafe { std::alloc::alloc(layout) }).unwrap();
        // SAFETY: the memory is this long, and nobody else's.
        unsafe { base.as_ptr().write_bytes(GUARD, bytes + 128) };
        let entry = (base.as_ptr().addr(), bytes);
        self.out.lock().unwrap().push(entry);
        let out = Arc::clone(&self.out);
        let owner = Owner(base);
        let free = move || {
            let owner = owner;
            let mut out = out.lock().unwrap();
            let at = out.iter().position(|known| *known == entry).expect("given back once");
            out.swap_remove(at);
            // SAFETY: `alloc` was given this many bytes, and wrote them all.
            let all = unsafe { std::slice::from_raw_parts(owner.0.as_ptr(), bytes + 128) };
            assert!(all[bytes..].iter().all(|&byte| byte == GUARD), "written past its end");
            // SAFETY: allocated above with this layout; freed once.
            unsafe { std::alloc::dealloc(owner.0.as_ptr(), layout) };
        };
        let lock = Lock { os: false, driver: true };
        // SAFETY: aligned to 64, initialised, this block's alone until `free`,
        // which may run anywhere. Nothing here acts upon the lock. Longer than
        // asked for: what is beyond is not to be used.
        Ok(unsafe { Block::from_raw(base, bytes + 64, lock, free) })
    }

    fn locks(&self) -> bool {
        true
    }
}

/// Memory on its way to where it is freed.
struct Owner(NonNull<u8>);

// SAFETY: it stands for memory that one closure owns, to free it.
unsafe impl Send for Owner {}
// SAFETY: as above; a shared `Owner` is not used at all.
unsafe impl Sync for Owner {}

impl Drop for Ledger {
    fn drop(&mut self) {
        let out = mem::take(&mut *self.out.lock().unwrap());
        // Forgotten on purpose by the tests named so; else everything is back.
        let forgets = std::thread::current().name().is_some_and(|name| name.contains("forget"));
        assert!(forgets || out.is_empty() || std::thread::panicking(), "not given back: {out:?}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The lock is refused.
    Limit,
    /// There is no memory.
    NoMemory,
    /// Fewer bytes than asked for.
    Short,
    Panic,
}

/// Fails at given calls (from 0), and counts them. What it gives counts as
/// locked.
#[derive(Debug)]
struct Faulty {
    fault: Fault,
    at: &'static [usize],
    calls: AtomicUsize,
}

impl HostAlloc for Faulty {
    fn alloc(&self, bytes: usize) -> Result<Block> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if !self.at.contains(&call) {
            let owner = Block::shared(bytes)?;
            let lock = Lock { os: true, driver: false };
            let mut slot = SlotMut::from(owner);
            let ptr = NonNull::from(slot.as_mut_slice()).cast();
            // SAFETY: the bytes are the slot's, aligned as every block, and
            // nobody uses the slot before it is freed. Nothing here acts upon
            // the lock.
            return Ok(unsafe { Block::from_raw(ptr, bytes, lock, move || drop(slot)) });
        }
        match self.fault {
            Fault::Limit => Err(Error::refused(bytes, io::Error::from_raw_os_error(libc::ENOMEM))),
            Fault::NoMemory => {
                Err(Error::no_memory(bytes, io::Error::from_raw_os_error(libc::ENOMEM)))
            }
            Fault::Short => Block::zeroed(bytes - 1),
            Fault::Panic => panic!("an allocator's bug"),
        }
    }

    fn locks(&self) -> bool {
        true
    }
}

struct Setup {
    alloc: Arc<Faulty>,
    pool: Pool,
    budget: Arc<Budget>,
}

fn faulty(fault: Fault, at: &'static [usize], base: usize) -> Setup {
    let alloc = Arc::new(Faulty { fault, at, calls: AtomicUsize::new(0) });
    let budget = Arc::new(Budget::of(64 << 20));
    let pool = Pool::new(Arc::clone(&alloc) as Alloc, Arc::clone(&budget));
    pool.set_base(base);
    Setup { alloc, pool, budget }
}

impl Setup {
    fn calls(&self) -> usize {
        self.alloc.calls.load(Ordering::Relaxed)
    }

    fn nothing_left(&self) {
        self.pool.release();
        let stats = self.pool.stats();
        assert_eq!(
            (stats.slots, stats.reserved, stats.in_use, stats.asked, self.budget.used()),
            (0, 0, 0, 0, 0)
        );
    }
}

/// What has no fault does what every allocator does.
#[test]
fn no_fault() {
    for test in [
        suite::written_sealed_read_reused,
        suite::any_order_of_requests,
        suite::what_exceeds_the_budget_is_ordinary,
        suite::rows_by_many_threads,
    ] {
        test(
            &(Arc::new(Faulty { fault: Fault::Panic, at: &[], calls: AtomicUsize::new(0) })
                as Alloc),
        );
    }
}

#[test]
fn refused_at_each_call_in_turn() {
    const BYTES: usize = 1 << 20;
    for at in [&[0usize][..], &[1], &[2], &[0, 1], &[1, 2]] {
        let setup = faulty(Fault::Limit, at, 3);
        let mut slots: Vec<_> = (0..3).map(|_| setup.pool.acquire(BYTES).unwrap()).collect();
        for (i, slot) in slots.iter_mut().enumerate() {
            slot.as_mut_slice().fill(i as u8);
            assert_eq!(slot.len(), BYTES);
        }
        // After the first refusal as much is not asked for again.
        let first = at[0];
        assert_eq!(setup.calls(), first + 1);
        let locked = slots.iter().filter(|slot| slot.lock().os).count();
        assert_eq!(locked, first);
        let stats = setup.pool.stats();
        assert_eq!((stats.slots, stats.in_use), (first, first));
        assert_eq!(stats.overflowed as usize, 3 - first);
        assert_eq!(setup.budget.used(), first * BYTES);
        for (i, slot) in slots.into_iter().enumerate() {
            assert!(slot.seal().as_slice().iter().all(|&byte| byte == i as u8));
        }
        setup.nothing_left();
    }
}

#[test]
fn a_refusal_is_remembered_till_something_is_given_back() {
    const BYTES: usize = 1 << 20;
    let setup = faulty(Fault::Limit, &[1], 2);
    assert!(setup.pool.refusal().is_none());
    let first = setup.pool.acquire(BYTES).unwrap();
    let second = setup.pool.acquire(BYTES).unwrap();
    assert!(first.lock().os && !second.lock().os);
    let refusal = setup.pool.refusal().expect("it was refused").to_string();
    assert!(refusal.contains("1048576 bytes"), "{refusal}");
    // As many bytes: not tried. Fewer: tried.
    assert!(!setup.pool.acquire(BYTES + 1).unwrap().lock().os);
    assert_eq!(setup.calls(), 2);
    assert!(setup.pool.acquire(BYTES / 2).unwrap().lock().os);
    assert_eq!(setup.calls(), 3);
    // A new epoch: tried again.
    setup.pool.trim();
    assert!(setup.pool.acquire(BYTES).unwrap().lock().os);
    assert_eq!(setup.calls(), 4);
    drop((first, second));
    setup.nothing_left();
}

/// Several at once are refused, but one is not.
#[test]
fn refused_together_had_alone() {
    let setup = faulty(Fault::Limit, &[0], 4);
    let slot = setup.pool.acquire(100).unwrap();
    assert!(slot.lock().os);
    assert_eq!((setup.calls(), setup.pool.stats().slots), (2, 1));
    assert_eq!(setup.budget.used(), page_size());
    drop(slot);
    setup.nothing_left();
}

#[test]
fn no_memory_is_an_error() {
    for bytes in [100, 1 << 20] {
        let setup = faulty(Fault::NoMemory, &[1], 1);
        let first = setup.pool.acquire(bytes).unwrap();
        let error = setup.pool.acquire(bytes).unwrap_err();
        assert!(!error.is_limit() && !error.is_fork());
        assert_eq!(error.bytes(), Some(bytes));
        assert!(std::error::Error::source(&error).is_some());
        let stats = setup.pool.stats();
        assert_eq!((stats.slots, stats.in_use, stats.overflowed), (1, 1, 0));
        assert_eq!(setup.budget.used(), stats.reserved);
        // It was that once.
        assert!(setup.pool.acquire(bytes).unwrap().lock().os);
        drop(first);
        setup.nothing_left();
    }
}

#[test]
fn a_block_too_short_is_an_error() {
    for bytes in [100, 1 << 20] {
        let setup = faulty(Fault::Short, &[0, 1], 3);
        let error = setup.pool.acquire(bytes).unwrap_err();
        assert!(!error.is_limit());
        assert!(error.to_string().contains("gave a block of"), "{error}");
        let alone = SlotMut::alone(&*setup.alloc, bytes).unwrap_err();
        assert_eq!(alone.bytes(), Some(bytes));
        assert!(setup.pool.acquire(bytes).is_ok());
        setup.nothing_left();
    }
}

#[test]
fn an_allocator_that_panics_takes_nothing_along() {
    for bytes in [100, 1 << 20] {
        let setup = faulty(Fault::Panic, &[0], 2);
        let panicked = catch_unwind(AssertUnwindSafe(|| setup.pool.acquire(bytes).map(drop)));
        assert!(panicked.is_err());
        assert_eq!((setup.budget.used(), setup.pool.stats().reserved), (0, 0));
        // Nor is it believed that its slots are still coming.
        let slots = [setup.pool.acquire(bytes).unwrap(), setup.pool.acquire(bytes).unwrap()];
        let stats = setup.pool.stats();
        assert_eq!((stats.slots, stats.grown), (2, 0));
        drop(slots);
        setup.nothing_left();
    }
}

/// An allocator that changes its mind: what was taken from the budget and
/// what is given back must agree all the same.
#[test]
fn locks_is_asked_once() {
    #[derive(Debug, Default)]
    struct Moody(AtomicUsize);

    impl HostAlloc for Moody {
        fn alloc(&self, bytes: usize) -> Result<Block> {
            Block::zeroed(bytes)
        }

        fn locks(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
        }
    }

    let budget = Arc::new(Budget::of(1 << 20));
    let moody = Arc::new(Moody::default());
    let pool = Pool::new(Arc::clone(&moody) as Alloc, Arc::clone(&budget));
    for _ in 0..5 {
        drop(pool.acquire(100).unwrap());
        pool.release();
    }
    assert_eq!((budget.used(), moody.0.load(Ordering::Relaxed)), (0, 1));
}

/// Sizes that come and go end in slots that are large enough for all of them:
/// then nothing is asked of the allocator any more.
#[test]
fn no_allocation_in_steady_state() {
    let setup = faulty(Fault::Panic, &[], 4);
    let sizes = [300 << 10, 700 << 10, 500 << 10, 400 << 10];
    let epoch = || {
        for round in 0..20 {
            let _held = [0, 1, 2].map(|i| setup.pool.acquire(sizes[(round + i) % 4]).unwrap());
        }
        setup.pool.trim();
    };
    epoch();
    let calls = setup.calls();
    for _ in 0..5 {
        epoch();
    }
    assert_eq!(setup.calls(), calls);
    let stats = setup.pool.stats();
    assert_eq!((stats.overflowed, stats.grown), (0, 0));
    assert!(stats.slots <= 4);
    setup.nothing_left();
}

/// Two pools share a budget: what one gives back, the other can have.
#[test]
fn one_budget_for_two_pools() {
    const BYTES: usize = 1 << 20;
    let budget = Arc::new(Budget::of(2 * BYTES));
    let alloc = || Arc::new(Ledger::default()) as Alloc;
    let one = Pool::new(alloc(), Arc::clone(&budget));
    let two = Pool::new(alloc(), Arc::clone(&budget));
    let slots = [one.acquire(BYTES).unwrap(), two.acquire(BYTES).unwrap()];
    assert!(slots.iter().all(|slot| slot.lock().driver));
    assert!(!two.acquire(BYTES).unwrap().lock().driver);
    drop(slots);
    one.release();
    let slots = [two.acquire(BYTES).unwrap(), two.acquire(BYTES).unwrap()];
    assert!(slots.iter().all(|slot| slot.lock().driver));
    drop((slots, one));
    drop(two);
    assert_eq!(budget.used(), 0);
}
