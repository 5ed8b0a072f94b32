//! Knowing about `fork()` without asking the kernel.
//!
//! A getpid() on every slot handed out would cost more than the slot. Counters
//! moved by handlers that `fork` itself runs (pthread_atfork) cost a load.
//! `vfork`, `posix_spawn` and raw `clone` run no handlers; what follows them
//! is `exec`, which leaves no memory of ours behind.

use std::alloc::{Layout, handle_alloc_error};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Forks that threads of this process have begun. Moved before the kernel
/// copies anything.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
/// Forks that have ended. Fewer than begun: one is under way, and the kernel
/// may or may not have made the copy yet.
static ENDED: AtomicUsize = AtomicUsize::new(0);
/// How many forks lie between this process and the first of its line.
static GENERATION: AtomicUsize = AtomicUsize::new(0);

/// A moment while a fork was under way counts as before it, whatever follows.
const UNDER_WAY: usize = usize::MAX;

extern "C" fn before_fork() {
    BEGUN.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn in_parent() {
    ENDED.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::SeqCst);
    // There is one thread here, and its fork is over; those that other threads
    // of the parent had begun do not go on here.
    ENDED.store(BEGUN.load(Ordering::SeqCst), Ordering::SeqCst);
}

/// Sets up the handlers, once. No lock: a child forked while another thread
/// was in here could wait for it for ever. Two threads may both do it, which
/// moves each counter by two.
fn set_up_handlers() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: the handlers only move atomics, which is allowed between fork
    // and exec (async-signal-safe), and live as long as this library does.
    let failed =
        unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    if failed != 0 {
        // Only for want of a few words of memory; as for a Box. To go on would
        // be to miss forks.
        handle_alloc_error(Layout::new::<[usize; 4]>());
    }
    DONE.store(true, Ordering::Release);
}

/// A moment in the life of a process, seen from its forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    begun: usize,
    generation: usize,
}

impl Moment {
    /// Now. The first call sets up the handlers.
    pub fn now() -> Self {
        set_up_handlers();
        // In this order: if as many had ended as have begun, none was under
        // way when the second was read.
        let ended = ENDED.load(Ordering::SeqCst);
        let begun = BEGUN.load(Ordering::SeqCst);
        Moment {
            begun: if begun == ended { begun } else { UNDER_WAY },
            generation: GENERATION.load(Ordering::Relaxed),
        }
    }

    /// Is this still the process of that moment?
    #[inline]
    pub fn same_process(self) -> bool {
        GENERATION.load(Ordering::Relaxed) == self.generation
    }

    /// Has no thread of this process begun to fork since, and was none at it?
    /// Otherwise a child may still look at memory that was mapped then.
    #[inline]
    pub fn no_fork_since(self) -> bool {
        self.same_process() && BEGUN.load(Ordering::SeqCst) == self.begun
    }
}
