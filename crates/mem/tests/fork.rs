//! What a real fork() finds. A binary of its own, whose tests take turns: a
//! fork is the whole process's, and slots held by other tests would be held
//! across it.

#![cfg(not(loom))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use pinfeed_mem::{
    Block, Budget, Grid, HostAlloc, Lane, Lock, Moment, Next, Pageable, Plan, Pool, Queue, Result,
    Slot, SlotMut, page_size,
};

// ------------------------------------------------------------------- forking

/// One test at a time. What the threads of the others wait on is not used in
/// a child.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static HANDLERS: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // Before the crate sets up its own, so that it is called between them and
    // the fork itself: handlers before a fork run last set up first, those
    // after it first set up first.
    HANDLERS.call_once(|| {
        // SAFETY: while a test forks, the only other threads wait for their
        // turn, so the handlers may do what any code may.
        let failed = unsafe { libc::pthread_atfork(Some(call_during), Some(call_during), None) };
        assert_eq!(failed, 0);
    });
    turn
}

type During = Box<dyn FnMut() + Send>;

/// What to do while the next fork is under way: once before the process is
/// copied, once after it, in the parent.
static DURING: Mutex<Option<During>> = Mutex::new(None);

extern "C" fn call_during() {
    if let Some(during) = &mut *DURING.lock().unwrap_or_else(PoisonError::into_inner) {
        during();
    }
}

/// A forked process, running.
struct Child(libc::pid_t);

/// Forks. The child runs `body` and ends: well, if it did not panic; by an
/// alarm, if it hangs.
fn fork(body: impl FnOnce()) -> Child {
    // SAFETY: the child runs test code, allocates (glibc's allocator can after
    // fork), and ends by _exit: no thread of the parent's is waited for.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", io::Error::last_os_error());
    if pid > 0 {
        return Child(pid);
    }
    // SAFETY: kills this process if it hangs; nothing else.
    unsafe { libc::alarm(10) };
    let result = catch_unwind(AssertUnwindSafe(body));
    if let Err(panic) = &result {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref().copied()).unwrap_or("?");
        _ = writeln!(io::stderr(), "in the child: {text}");
    }
    // SAFETY: ends the process, without what the parent left to do at exit.
    unsafe { libc::_exit(i32::from(result.is_err())) }
}

impl Child {
    /// Waits for it; it must have ended well.
    fn join(self) {
        let mut status = 0;
        // SAFETY: waits for a child of this process; `status` is a local.
        let waited = unsafe { libc::waitpid(self.0, &mut status, 0) };
        assert_eq!(waited, self.0);
        assert_eq!(status, 0, "the child panicked, or hung (status {status:#x})");
    }
}

/// Lets a child wait for the parent.
struct Gate(PipeReader, PipeWriter);

impl Gate {
    fn new() -> Self {
        let (reader, writer) = io::pipe().unwrap();
        Gate(reader, writer)
    }

    fn open(mut self) {
        self.1.write_all(&[1]).unwrap();
    }

    fn wait(&self) {
        (&self.0).read_exact(&mut [0]).unwrap();
    }
}

/// Is there memory at this address?
fn is_mapped(address: *const u8) -> bool {
    let page = address.map_addr(|address| address / page_size() * page_size());
    let mut there = 0u8;
    // SAFETY: asks about a page, and writes one byte to a local.
    unsafe { libc::mincore(page.cast_mut().cast(), 1, &mut there) == 0 }
}

// -------------------------------------------------------------------- memory

/// Shared mappings, as page-locked memory is.
#[derive(Debug)]
struct Shared;

impl HostAlloc for Shared {
    fn alloc(&self, bytes: usize) -> Result<Block> {
        Block::shared(bytes)
    }

    fn locks(&self) -> bool {
        true
    }
}

fn pool(alloc: impl HostAlloc + 'static, base: usize) -> Pool {
    budgeted(alloc, base).0
}

fn budgeted(alloc: impl HostAlloc + 'static, base: usize) -> (Pool, Arc<Budget>) {
    let budget = Arc::new(Budget::of(1 << 30));
    let pool = Pool::new(Arc::new(alloc), Arc::clone(&budget));
    pool.set_base(base);
    (pool, budget)
}

fn filled(pool: &Pool, bytes: usize, value: u8) -> Slot {
    let mut slot = pool.acquire(bytes).unwrap();
    slot.as_mut_slice().fill(value);
    slot.seal()
}

fn holds(slot: &Slot, value: u8) -> bool {
    slot.as_slice().iter().all(|&byte| byte == value)
}

const BYTES: usize = 1 << 20;

// --------------------------------------------------------------------- tests

#[test]
fn moments() {
    let _alone = alone();
    let before = Moment::now();
    assert!(before.same_process() && before.no_fork_since());
    fork(move || {
        assert!(!before.same_process() && !before.no_fork_since());
        let here = Moment::now();
        assert!(here.same_process() && here.no_fork_since());
        fork(move || assert!(!here.same_process() && !before.same_process())).join();
        assert!(here.same_process() && !here.no_fork_since());
        assert!(Moment::now().no_fork_since());
    })
    .join();
    assert!(before.same_process() && !before.no_fork_since());
    assert!(Moment::now().no_fork_since());
}

/// Before a fork is over nobody knows what the child will see: what is taken
/// or given back then counts as held across it.
#[test]
fn a_moment_during_a_fork() {
    let _alone = alone();
    let before = Moment::now();
    let moments = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&moments);
    *DURING.lock().unwrap() = Some(Box::new(move || {
        assert!(!before.no_fork_since());
        let now = Moment::now();
        assert!(now.same_process() && !now.no_fork_since());
        noted.lock().unwrap().push(now);
    }));
    fork(|| ()).join();
    *DURING.lock().unwrap() = None;
    let moments = moments.lock().unwrap();
    assert_eq!(moments.len(), 2, "before the copy, and after");
    assert!(moments.iter().all(|moment| moment.same_process() && !moment.no_fork_since()));
}

#[test]
fn slots_taken_and_given_back_during_a_fork_are_not_reused() {
    let _alone = alone();
    let pool = Arc::new(pool(Shared, 2));
    let mut held = vec![filled(&pool, BYTES, 1), filled(&pool, BYTES, 2)];
    let taken = Arc::new(Mutex::new(Vec::new()));
    let (user, keep) = (Arc::clone(&pool), Arc::clone(&taken));
    *DURING.lock().unwrap() = Some(Box::new(move || {
        drop(held.pop());
        keep.lock().unwrap().push(user.acquire(BYTES).unwrap());
    }));
    fork(|| ()).join();
    *DURING.lock().unwrap() = None;
    let stats = pool.stats();
    assert_eq!((stats.slots, stats.in_use), (2, 2), "two went, two came");
    taken.lock().unwrap().clear();
    let stats = pool.stats();
    assert_eq!((stats.slots, stats.reserved), (0, 0));
}

/// The child drops what it inherited: nothing is unmapped there, and nothing
/// goes back to the pool.
#[test]
fn a_child_drops_what_it_inherited() {
    let _alone = alone();
    let (pool, budget) = budgeted(Shared, 2);
    let sealed = filled(&pool, BYTES, 1);
    let mut written = pool.acquire(BYTES).unwrap();
    written.as_mut_slice().fill(2);
    let own = SlotMut::alone(&Shared, BYTES).unwrap().seal();
    let free = filled(&pool, BYTES, 3);
    let addresses = [&sealed, &free, &own].map(|slot| slot.as_slice().as_ptr());
    drop(free);
    let stats = pool.stats();
    let used = budget.used();
    // The parent's values are copies in the child: what is dropped there is
    // still there here.
    let parts = Mutex::new(Some((pool, sealed, written, own)));
    fork(|| {
        let (pool, sealed, written, own) = parts.lock().unwrap().take().unwrap();
        assert!(holds(&sealed, 1));
        drop((sealed, written, own));
        assert!(addresses.iter().all(|&address| is_mapped(address)), "after the slots");
        pool.trim();
        pool.release();
        assert_eq!((pool.stats().slots, pool.stats().in_use), (0, 0));
        assert!(pool.refusal().is_none());
        drop(pool);
        assert!(addresses.iter().all(|&address| is_mapped(address)), "after the pool");
        assert_eq!(budget.used(), used, "nothing was given back");
    })
    .join();
    let (pool, sealed, mut written, own) = parts.into_inner().unwrap().unwrap();
    assert_eq!(pool.stats(), stats);
    assert!(holds(&sealed, 1) && holds(&own, 0));
    assert!(written.as_mut_slice().iter().all(|&byte| byte == 2));
    drop((sealed, written));
    assert_eq!(pool.stats().in_use, 0);
}

/// An allocator may hold a driver's handles: a child leaves it alone.
#[test]
fn a_child_does_not_drop_the_allocator() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);

    #[derive(Debug)]
    struct Driver;

    impl HostAlloc for Driver {
        fn alloc(&self, bytes: usize) -> Result<Block> {
            Block::shared(bytes)
        }

        fn locks(&self) -> bool {
            true
        }
    }

    impl Drop for Driver {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    let _alone = alone();
    let pool = Mutex::new(Some(pool(Driver, 1)));
    fork(|| {
        drop(pool.lock().unwrap().take());
        assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
    })
    .join();
    drop(pool);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 1);
}

#[test]
fn a_child_is_refused_and_told_why() {
    let _alone = alone();
    let pool = pool(Shared, 2);
    drop(pool.acquire(BYTES).unwrap());
    fork(|| {
        for bytes in [0, 100, BYTES] {
            let error = pool.acquire(bytes).unwrap_err();
            assert!(error.is_fork() && !error.is_limit());
            assert!(error.to_string().contains("fork"), "{error}");
        }
        // A pool of its own is as good as any.
        let own = self::pool(Shared, 2);
        let address = filled(&own, BYTES, 1).as_slice().as_ptr();
        assert_eq!(own.acquire(BYTES).unwrap().as_mut_slice().as_ptr(), address, "reused");
        // And is another's in a child of the child.
        fork(|| assert!(own.acquire(BYTES).unwrap_err().is_fork())).join();
        drop(own);
        assert!(!is_mapped(address));
    })
    .join();
    assert!(pool.acquire(BYTES).is_ok());
}

/// The parent frees a slot that it held across the fork, and goes on with the
/// pool: the child, still there, sees what it saw.
#[test]
fn a_slot_held_across_a_fork_is_not_reused() {
    let _alone = alone();
    for bytes in [100, BYTES] {
        let pool = pool(Shared, 2);
        let held = filled(&pool, bytes, 1);
        // A second slot keeps the segment of the small ones alive.
        let other = filled(&pool, bytes, 2);
        let address = held.as_slice().as_ptr();
        let gate = Gate::new();
        let child = fork(|| {
            gate.wait();
            assert!(holds(&held, 1) && holds(&other, 2));
        });
        drop(held);
        let stats = pool.stats();
        assert_eq!((stats.slots, stats.in_use), (1, 1), "it left the pool");
        if bytes == BYTES {
            assert!(!is_mapped(address), "it was unmapped");
            assert_eq!(stats.reserved, BYTES);
        }
        let after: Vec<Slot> = (0..8).map(|_| filled(&pool, bytes, 9)).collect();
        if bytes < BYTES {
            // The segment is still mapped: nobody may be given that place.
            assert!(after.iter().all(|slot| slot.as_slice().as_ptr() != address));
        }
        drop(after);
        for _ in 0..8 {
            assert!(holds(&filled(&pool, bytes, 8), 8));
        }
        gate.open();
        child.join();
        assert!(holds(&other, 2));
    }
}

/// So is one that was being written, and sealed after the fork.
#[test]
fn a_slot_written_across_a_fork_is_not_reused() {
    let _alone = alone();
    let pool = pool(Shared, 1);
    let mut slot = pool.acquire(BYTES).unwrap();
    fork(|| ()).join();
    slot.as_mut_slice().fill(1);
    let slot = slot.seal();
    assert!(holds(&slot, 1));
    drop(slot);
    assert_eq!(pool.stats().slots, 0);
}

/// What was free at the fork, or was taken after it, is reused as ever.
#[test]
fn slots_not_held_across_a_fork_are_reused() {
    let _alone = alone();
    let pool = pool(Shared, 1);
    let address = filled(&pool, BYTES, 1).as_slice().as_ptr();
    for value in 0..3 {
        fork(|| ()).join();
        let slot = filled(&pool, BYTES, value);
        assert_eq!(slot.as_slice().as_ptr(), address);
    }
    let stats = pool.stats();
    assert_eq!((stats.slots, stats.grown), (1, 0));
}

/// The heap is private: the child has a copy, and the parent may go on.
#[test]
fn ordinary_memory_held_across_a_fork_is_reused() {
    let _alone = alone();
    let pool = pool(Pageable, 1);
    let held = filled(&pool, BYTES, 1);
    let address = held.as_slice().as_ptr();
    let gate = Gate::new();
    let child = fork(|| {
        gate.wait();
        assert!(holds(&held, 1));
        drop(held.clone());
    });
    drop(held);
    let again = filled(&pool, BYTES, 2);
    assert_eq!(again.as_slice().as_ptr(), address);
    gate.open();
    child.join();
}

/// A stranger's memory may be registered with a driver: it is told in the
/// process that it gave the memory to, and there only.
#[test]
fn a_stranger_is_not_told_in_a_child() {
    let _alone = alone();
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    let block = || {
        let owner = Block::shared(BYTES).unwrap();
        let mut slot = SlotMut::from(owner);
        let ptr = NonNull::from(slot.as_mut_slice()).cast();
        let free = move || {
            TOLD.fetch_add(1, Ordering::Relaxed);
            drop(slot);
        };
        // SAFETY: the bytes are the slot's, aligned as every block, and nobody
        // uses the slot before it is freed.
        unsafe { Block::from_raw(ptr, BYTES, Lock::default(), free) }
    };
    let slot = SlotMut::from(block()).seal();
    fork(|| {
        // The child's copy of the only handle.
        // SAFETY: as if the value had been moved here; the child never uses
        // the original, and ends by _exit.
        drop(unsafe { std::ptr::read(&slot) });
        assert_eq!(TOLD.load(Ordering::Relaxed), 0);
        drop(block());
        assert_eq!(TOLD.load(Ordering::Relaxed), 1, "its own is");
    })
    .join();
    assert_eq!(TOLD.load(Ordering::Relaxed), 0);
    drop(slot);
    assert_eq!(TOLD.load(Ordering::Relaxed), 1);
}

/// A queue whose workers are the parent's is closed and empty here, and goes
/// without a word.
#[test]
fn a_child_inherits_no_queue() {
    let _alone = alone();
    let pool = pool(Shared, 2);
    let stay = AtomicBool::new(false);
    let queue = Queue::<(), Slot>::new(1);
    let mut lane = Lane::new(&queue, true);
    for _ in 0..3 {
        lane.issue(2, ());
    }
    let mut first = queue.claim(&stay).unwrap();
    let plan = Arc::new(Plan::new(2, [10]).unwrap());
    first.lay(|()| Grid::new(plan, |_, bytes| pool.acquire(bytes))).unwrap();
    let second = queue.claim(&stay).unwrap();
    let mut third = queue.claim(&stay).unwrap();
    assert!(third.finish().is_none());
    third = queue.claim(&stay).unwrap();
    let finished = third.finish().expect("its last claim");
    let result = filled(&pool, 100, 1);
    let parts = Mutex::new(Some((queue, lane, first, second, finished, result)));
    fork(|| {
        let (queue, mut lane, first, second, finished, result) =
            parts.lock().unwrap().take().unwrap();
        finished.deliver(result);
        assert!(first.finish().is_none() && second.finish().is_none(), "the parent makes them");
        assert!(queue.claim(&stay).is_none());
        queue.wake_all();
        queue.close();
        assert_eq!(queue.waits(), 0);
        let panics = |body: &mut dyn FnMut()| {
            let panic = catch_unwind(AssertUnwindSafe(body)).unwrap_err();
            assert!(panic.downcast_ref::<String>().unwrap().contains("fork"));
        };
        panics(&mut || lane.issue(1, ()));
        panics(&mut || drop(lane.next(None)));
        panics(&mut || drop(Lane::new(&queue, true)));
        drop((lane, queue));
    })
    .join();
    let (queue, mut lane, first, second, finished, result) = parts.into_inner().unwrap().unwrap();
    assert!(first.finish().is_none());
    let ended = second.finish().expect("the last of its ticket");
    finished.deliver(result.clone());
    ended.deliver(result);
    let next = |lane: &mut Lane<(), Slot>| {
        let Next::Ready(slot) = lane.next(None) else { panic!("no result") };
        assert!(holds(&slot, 1));
    };
    next(&mut lane);
    next(&mut lane);
    assert!(queue.claim(&stay).is_some(), "the third ticket");
}

/// A heap that stops a thread at an allocation of its choice, with whatever
/// locks it holds there.
struct Stopping;

#[global_allocator]
static HEAP: Stopping = Stopping;

/// Set by the thread that has stopped.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// Lets it go on.
static GO_ON: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Stop at the so-manieth allocation from here; 0: never.
    static STOP_AT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator, now and then a little later.
unsafe impl GlobalAlloc for Stopping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let left = STOP_AT.get();
        STOP_AT.set(left.saturating_sub(1));
        if left == 1 {
            STOPPED.store(true, Ordering::SeqCst);
            while !GO_ON.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }
}

type Tickets = Queue<(), Slot>;

/// Forks while another thread is stopped in the middle of something, at each
/// of its allocations in turn: under some of them it holds a lock, which in
/// the child it holds for ever. The child does not wait for it.
#[test]
fn a_child_waits_for_no_lock() {
    type Action = fn(&Pool, &Tickets, &mut Lane<(), Slot>);
    let actions: [(&str, Action); 5] = [
        ("acquire", |pool, _, _| drop([pool.acquire(5000).unwrap(), pool.acquire(100).unwrap()])),
        ("trim", |pool, _, _| pool.trim()),
        ("issue", |_, _, lane| (0..5).for_each(|_| lane.issue(1, ()))),
        ("deliver", |pool, queue, lane| {
            lane.issue(1, ());
            let claim = queue.claim(&AtomicBool::new(false)).unwrap();
            claim.finish().unwrap().deliver(pool.acquire(100).unwrap().seal());
            drop(lane.next(None));
        }),
        ("new lane", |_, queue, _| drop([(); 5].map(|()| Lane::new(queue, true)))),
    ];
    let _alone = alone();
    for (name, action) in actions {
        let mut forks = 0;
        loop {
            STOPPED.store(false, Ordering::SeqCst);
            GO_ON.store(false, Ordering::SeqCst);
            if !stopped_at(forks + 1, action) {
                break;
            }
            forks += 1;
        }
        assert!(forks > 0, "{name} allocates nothing, and so proves nothing");
    }
}

/// Stops another thread at its `at`-th allocation within `action`, and forks.
/// False, if it has none.
fn stopped_at(at: usize, action: fn(&Pool, &Tickets, &mut Lane<(), Slot>)) -> bool {
    let pool = pool(Shared, 3);
    let queue = Tickets::new(1);
    let mut theirs = Lane::new(&queue, true);
    let inherited = Lane::new(&queue, true);
    // Some free, for `trim`.
    pool.set_base(6);
    let held = filled(&pool, 100, 7);
    pool.set_base(1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            STOP_AT.set(at);
            action(&pool, &queue, &mut theirs);
            STOP_AT.set(0);
            done.store(true, Ordering::SeqCst);
        });
        while !STOPPED.load(Ordering::SeqCst) && !done.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        let _go_on = Set(&GO_ON);
        if done.load(Ordering::SeqCst) {
            thread.join().unwrap();
            return false;
        }
        fork(|| {
            assert!(holds(&held, 7));
            _ = pool.stats();
            assert!(pool.acquire(100).unwrap_err().is_fork());
            pool.release();
            pool.trim();
            assert!(queue.claim(&done).is_none());
            queue.close();
            // SAFETY: as if it had been moved here; the child does not use the
            // original any more, and ends by _exit.
            drop(unsafe { std::ptr::read(&held) });
            // SAFETY: as above.
            drop(unsafe { std::ptr::read(&inherited) });
            // SAFETY: as above.
            drop(unsafe { std::ptr::read(&pool) });
            // SAFETY: as above.
            drop(unsafe { std::ptr::read(&queue) });
        })
        .join();
        true
    })
}

/// The same at random: forks while other threads do everything at once.
#[test]
fn forks_in_the_midst_of_work() {
    let _alone = alone();
    let pool = pool(Shared, 4);
    let queue = Queue::<(), Slot>::new(2);
    let stop = AtomicBool::new(false);
    let stay = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(mut claim) = queue.claim(&stay) {
                    let plan = Arc::new(Plan::new(claim.ticket_rows(), [10]).unwrap());
                    claim.lay(|()| Grid::new(plan, |_, bytes| pool.acquire(bytes))).unwrap();
                    if let Some(finished) = claim.finish() {
                        finished.deliver(filled(&pool, 300 << 10, 1));
                    }
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop(pool.acquire(100).unwrap());
            }
        });
        scope.spawn(|| {
            let mut lane = Lane::new(&queue, true);
            while !stop.load(Ordering::Relaxed) {
                lane.issue(3, ());
                lane.issue(3, ());
                drop(lane.next(None));
                drop(lane.next(None));
                pool.trim();
            }
            queue.close();
        });
        let _stop = Set(&stop);
        let held = filled(&pool, 100, 7);
        let inherited = Lane::new(&queue, true);
        for _ in 0..40 {
            fork(|| {
                assert!(holds(&held, 7));
                // SAFETY: as if it had been moved here; the child does not use
                // the original any more, and ends by _exit.
                drop(unsafe { std::ptr::read(&held) });
                // SAFETY: as above.
                drop(unsafe { std::ptr::read(&inherited) });
                assert!(pool.acquire(100).unwrap_err().is_fork());
                pool.release();
                pool.trim();
                _ = pool.stats();
                assert!(queue.claim(&stay).is_none());
                queue.close();
                // SAFETY: as above.
                drop(unsafe { std::ptr::read(&pool) });
                // SAFETY: as above.
                drop(unsafe { std::ptr::read(&queue) });
            })
            .join();
        }
    });
    assert_eq!(pool.stats().in_use, 0);
}

/// Sets a flag when it goes, also when a test fails: others wait for it.
struct Set<'a>(&'a AtomicBool);

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
