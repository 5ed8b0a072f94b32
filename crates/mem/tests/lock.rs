//! The operating system's lock, by its own figures. A binary of its own: what
//! it counts is the process's, so its tests take turns.

#![cfg(not(loom))]

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinfeed_mem::{
    Budget, HostAlloc, PageLock, Pool, SlotMut, lock_limit, locked_bytes, page_size, round_to_pages,
};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Set in the process that `over_the_limit` starts.
const CHILD: &str = "PINFEED_TEST_LIMIT";
const LIMIT: usize = 1 << 20;

fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says so past the test harness, which shows only what failed.
fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("?").to_owned();
    _ = writeln!(io::stderr(), "{name}: skipped: {reason}");
}

/// Can this process lock so much more?
fn can_lock(bytes: usize) -> bool {
    match lock_limit() {
        Some(limit) if limit < locked_bytes() + bytes as u64 => {
            skip(&format!("RLIMIT_MEMLOCK is {limit} bytes, too few for {bytes} more"));
            false
        }
        _ => true,
    }
}

#[test]
fn the_system_counts_what_is_locked() {
    let _alone = alone();
    if !can_lock(8 << 20) {
        return;
    }
    let before = locked_bytes();
    for bytes in [1, page_size(), page_size() + 1, (5 << 20) + 7] {
        let pages = round_to_pages(bytes) as u64;
        let slot = SlotMut::alone(&PageLock, bytes).unwrap();
        assert_eq!(locked_bytes() - before, pages, "{bytes} bytes");
        let slot = slot.seal();
        assert!(slot.is_os_locked() && !slot.is_pinned());
        let clone = slot.clone();
        drop(slot);
        assert_eq!(locked_bytes() - before, pages);
        drop(clone);
        assert_eq!(locked_bytes(), before);
    }
    let budget = Arc::new(Budget::of(64 << 20));
    let pool = Pool::new(Arc::new(PageLock), Arc::clone(&budget));
    pool.set_base(3);
    let slots = [100, 100, 1 << 20, 1 << 20].map(|bytes| pool.acquire(bytes).unwrap());
    let stats = pool.stats();
    assert_eq!(locked_bytes() - before, stats.reserved as u64, "the pool's figure is the system's");
    assert_eq!(stats.reserved, budget.used());
    drop(slots);
    assert_eq!(locked_bytes() - before, stats.reserved as u64, "kept");
    pool.release();
    assert_eq!(locked_bytes(), before);
    drop(pool.acquire(1 << 20).unwrap());
    drop(pool);
    assert_eq!(locked_bytes(), before);
}

/// Locked, but not where it is no memory of the pool's.
#[test]
fn beyond_the_budget_nothing_is_locked() {
    let _alone = alone();
    if !can_lock(1 << 20) {
        return;
    }
    let before = locked_bytes();
    let pool = Pool::new(Arc::new(PageLock), Arc::new(Budget::of(1 << 20)));
    let locked = pool.acquire(1 << 20).unwrap().seal();
    let mut ordinary = pool.acquire(1 << 20).unwrap();
    ordinary.as_mut_slice().fill(1);
    let ordinary = ordinary.seal();
    assert!(locked.is_os_locked() && !ordinary.is_os_locked());
    assert_eq!(locked_bytes() - before, 1 << 20);
    assert!(pool.refusal().is_none(), "the system was not asked");
}

/// In a process that the limit holds for: without root, which may pass it.
#[test]
fn over_the_limit() {
    let _alone = alone();
    let is_root = rustix::process::geteuid().is_root();
    // Where anybody can read and run it: the build folder may be root's alone.
    let place = Place::new();
    let binary = place.0.join("lock-test");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    fs::set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&binary);
    command
        .args(["--exact", "in_a_process_with_a_limit", "--ignored", "--nocapture"])
        .current_dir("/")
        .env(CHILD, "1");
    if is_root {
        // With the user go the capabilities.
        command.uid(65534).gid(65534);
    }
    // SAFETY: between fork and exec only a system call is made.
    unsafe {
        command.pre_exec(|| {
            let limit = Some(LIMIT as u64);
            Ok(setrlimit(Resource::Memlock, Rlimit { current: limit, maximum: limit })?)
        });
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return skip(&format!("no process without root could be started: {error}")),
    };
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{}\n{text}", output.status);
    if text.contains("skipped: ") {
        skip(&text);
    }
}

/// A folder that everybody may enter; gone in the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("pinfeed-lock-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
#[ignore = "over_the_limit runs it, in a process of its own"]
fn in_a_process_with_a_limit() {
    if std::env::var_os(CHILD).is_none() {
        return skip("over_the_limit runs it, in a process of its own");
    }
    if lock_limit().is_none() {
        return skip("this process may pass its limit (CAP_IPC_LOCK)");
    }
    assert_eq!((lock_limit(), locked_bytes()), (Some(LIMIT as u64), 0));

    // The budget knows the limit, and says so.
    let budget = Budget::for_os_lock(None);
    assert_eq!(budget.limit(), LIMIT);
    let error = budget.check(3, LIMIT / 2).unwrap_err().to_string();
    assert!(error.contains("RLIMIT_MEMLOCK") && error.contains("ulimit -l"), "{error}");
    assert_eq!(Budget::for_os_lock(Some(LIMIT / 2)).limit(), LIMIT / 2, "the user's, if less");

    // What is held counts against it.
    let held = SlotMut::alone(&PageLock, LIMIT / 4).unwrap();
    assert_eq!(locked_bytes(), LIMIT as u64 / 4);
    assert_eq!(Budget::for_os_lock(Some(LIMIT)).limit(), LIMIT - LIMIT / 4);

    // Over the limit: all figures, and what to do.
    let error = PageLock.alloc(2 * LIMIT).unwrap_err();
    assert!(error.is_limit());
    assert_eq!(error.bytes(), Some(2 * LIMIT));
    let text = error.to_string();
    for part in [
        "2.0 MiB (2097152 bytes)",
        "holds 256.0 KiB (262144 bytes)",
        "(RLIMIT_MEMLOCK) is 1.0 MiB (1048576 bytes)",
        "ulimit -l unlimited",
        "LimitMEMLOCK=",
        "--ulimit memlock=-1",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert_eq!(locked_bytes(), LIMIT as u64 / 4, "what was refused is gone");

    // A pool with a budget beyond the limit: refused, and ordinary memory.
    let budget = Arc::new(Budget::of(1 << 30));
    let pool = Pool::new(Arc::new(PageLock), Arc::clone(&budget));
    let first = pool.acquire(LIMIT / 2).unwrap();
    assert!(first.lock().os);
    let mut second = pool.acquire(LIMIT / 2).unwrap();
    assert_eq!(second.lock(), Default::default());
    second.as_mut_slice().fill(1);
    assert!(!second.seal().is_os_locked());
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.reserved, stats.overflowed), (1, LIMIT / 2, 1));
    assert_eq!(budget.used(), LIMIT / 2);
    assert!(pool.refusal().expect("it was refused").to_string().contains("1048576 bytes"));
    // With room again it is locked again.
    drop((held, first));
    pool.release();
    assert!(pool.acquire(LIMIT).unwrap().lock().os);
    drop(pool);
    assert_eq!((locked_bytes(), budget.used()), (0, 0));

    // A pool with the limit for its budget: the system is not asked in vain.
    let pool = Pool::new(Arc::new(PageLock), Arc::new(Budget::for_os_lock(None)));
    pool.set_base(4);
    let slots: Vec<_> = (0..3).map(|_| pool.acquire(LIMIT / 2).unwrap()).collect();
    let locked: Vec<_> = slots.iter().map(|slot| slot.lock().os).collect();
    assert_eq!(locked, [true, true, false]);
    assert!(pool.refusal().is_none());
}
