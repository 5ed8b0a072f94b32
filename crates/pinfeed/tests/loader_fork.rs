//! A loader inherited by a forked child: its threads and its memory are the
//! parent's. Alone in its binary: fork and other tests' threads do not mix.

use std::fs;
use std::io::{self, Read, Write};
use std::mem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pinfeed::{Batch, DataLoader, Dataset, Iter, PinMemory, Result, Tensor};

/// A forked child. It fails if it panics, and is ended if it hangs.
struct Child(libc::pid_t);

impl Child {
    /// Runs `child` in a fork of this process. (To allocate there is not for
    /// all C libraries; glibc takes care.)
    fn run(child: impl FnOnce()) -> Self {
        // SAFETY: the child runs only what this thread brought along. Of locks
        // it takes the allocator's (which glibc resets) and those under test,
        // and it leaves by `_exit`, without a look at the harness.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "{}", io::Error::last_os_error());
        if pid == 0 {
            // SAFETY: sets a timer of this process, whose signal ends it.
            unsafe { libc::alarm(30) };
            let passed = catch_unwind(AssertUnwindSafe(child)).is_ok();
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(if passed { 0 } else { 1 }) };
        }
        Child(pid)
    }

    fn passes(self, what: &str) {
        let mut status = 0;
        // SAFETY: waits for our own child, and writes to our own integer.
        let waited = unsafe { libc::waitpid(self.0, &mut status, 0) };
        assert_eq!(waited, self.0);
        assert!(!libc::WIFSIGNALED(status), "{what}: signal {}", libc::WTERMSIG(status));
        assert_eq!(libc::WEXITSTATUS(status), 0, "{what}: the child failed");
    }
}

/// Is there memory at this address?
fn is_mapped(address: usize) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| {
        let (first, rest) = line.split_once('-').unwrap();
        let (last, _) = rest.split_once(' ').unwrap();
        let [first, last] = [first, last].map(|at| usize::from_str_radix(at, 16).unwrap());
        (first..last).contains(&address)
    })
}

fn is_fork_error(item: Option<Result<Batch>>) {
    let error = item.expect("an item").expect_err("an error");
    assert!(error.is_fork(), "{error}");
    assert!(error.to_string().contains("fork"), "{error}");
}

/// In the child: every use is an error, none a hang.
fn inherited<D: Dataset + 'static>(loader: &DataLoader<D>, passes: &mut [Iter<D>]) {
    for pass in passes {
        is_fork_error(pass.next());
        assert!(pass.next().is_none(), "and then it is over");
    }
    let mut new = loader.iter();
    is_fork_error(new.next());
    assert!(new.next().is_none());
    loader.release_memory();
    let memory = loader.memory();
    assert_eq!((memory.slab.slots, memory.small.slots), (0, 0));
}

/// Bytes of sample i.
const LEN: usize = 40_000;

fn numbers(batch: &Batch) -> Vec<u8> {
    let tensor = batch.tensor_at(0).unwrap();
    (0..batch.len())
        .map(|row| {
            let row = tensor.get(row).unwrap().to_vec::<u8>().unwrap();
            assert!(row.len() == LEN && row.iter().all(|&byte| byte == row[0]));
            row[0]
        })
        .collect()
}

fn expected(batches: Range<u8>) -> Vec<Vec<u8>> {
    batches.map(|batch| (4 * batch..4 * batch + 4).collect()).collect()
}

fn rest<D: Dataset + 'static>(pass: Iter<D>) -> Vec<Vec<u8>> {
    pass.map(|batch| numbers(&batch.unwrap())).collect()
}

#[test]
fn a_loader_in_a_forked_child() {
    for (workers, persistent) in [(0, false), (2, false), (2, true)] {
        for pin_memory in [PinMemory::Off, PinMemory::PageLock] {
            let locks = matches!(pin_memory, PinMemory::PageLock);
            let what = format!("{workers} workers, {persistent}, {pin_memory}");
            let data = Arc::new(pinfeed::from_fn(80, |index| {
                thread::sleep(Duration::from_micros(50));
                vec![index as u8; LEN]
            }));
            let loader = DataLoader::builder(Arc::clone(&data))
                .batch_size(4)
                .num_workers(workers)
                .persistent_workers(persistent)
                .pin_memory(pin_memory)
                .pinned_budget(4 << 20)
                .build()
                .unwrap();
            assert_eq!(rest(loader.iter()), expected(0..20));
            let mut passes = [loader.iter(), loader.iter()];
            let held = passes[0].next().unwrap().unwrap();
            assert_eq!(numbers(&held), [0, 1, 2, 3]);

            // Used, then dropped. Nothing is unmapped: it is the parent's.
            let lone = Tensor::full(&[LEN], 7u8).unwrap();
            let lone = lone.page_lock().unwrap_or(lone);
            let addresses = [held.tensor_at(0).unwrap(), lone.clone()];
            let addresses = addresses.map(|tensor| tensor.bytes().as_ptr().addr());
            let are_mapped = || !locks || addresses.into_iter().all(is_mapped);
            let child = Child::run(|| {
                assert_eq!(numbers(&held), [0, 1, 2, 3]);
                inherited(&loader, &mut passes);
                // SAFETY: what is dropped here is not touched again by this
                // child, which leaves by `_exit`; so each is dropped once.
                drop(unsafe { ptr::read(&held) });
                // SAFETY: as above.
                drop(unsafe { ptr::read(&passes) });
                // SAFETY: as above.
                drop(unsafe { ptr::read(&loader) });
                // SAFETY: as above.
                drop(unsafe { ptr::read(&lone) });
                assert!(are_mapped());
            });
            child.passes(&what);
            // Dropped without use, in another order.
            let child = Child::run(|| {
                // SAFETY: as above.
                drop(unsafe { ptr::read(&loader) });
                // SAFETY: as above.
                drop(unsafe { ptr::read(&passes) });
                // SAFETY: as above.
                drop(unsafe { ptr::read(&held) });
                assert!(are_mapped());
            });
            child.passes(&what);
            // While the workers are busy: whatever lock one holds just now, no
            // thread of the child waits for it.
            for _ in 0..10 {
                let mut busy = [loader.iter()];
                let child = Child::run(|| {
                    inherited(&loader, &mut busy);
                    // SAFETY: as above.
                    drop(unsafe { ptr::read(&busy) });
                    // SAFETY: as above.
                    drop(unsafe { ptr::read(&loader) });
                });
                child.passes(&what);
                let [busy] = busy;
                assert_eq!(rest(busy), expected(0..20), "{what}");
            }
            // A new one works there, over the same data set.
            let child = Child::run(|| {
                let own = DataLoader::builder(Arc::clone(&data))
                    .batch_size(4)
                    .num_workers(2)
                    .build()
                    .unwrap();
                assert_eq!(rest(own.iter()), expected(0..20));
                mem::forget(own);
            });
            child.passes(&what);

            // The parent goes on: what it held, what it had begun, and anew. No
            // child has unmapped or written anything of its.
            assert_eq!(numbers(&held), [0, 1, 2, 3]);
            let [begun, fresh] = passes;
            assert_eq!(rest(begun), expected(1..20), "{what}");
            assert_eq!(rest(fresh), expected(0..20), "{what}");
            for _ in 0..3 {
                assert_eq!(rest(loader.iter()), expected(0..20), "{what}");
            }
            assert_eq!(numbers(&held), [0, 1, 2, 3]);

            // A child that looks at a batch later still sees it, though the
            // parent has dropped it, and made others.
            let (mut go, mut say) = io::pipe().unwrap();
            let child = Child::run(|| {
                let mut byte = [0];
                go.read_exact(&mut byte).unwrap();
                assert_eq!(numbers(&held), [0, 1, 2, 3]);
            });
            drop(held);
            for _ in 0..3 {
                assert_eq!(rest(loader.iter()), expected(0..20), "{what}");
            }
            say.write_all(b"!").unwrap();
            child.passes(&what);
        }
    }
}
