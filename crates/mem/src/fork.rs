//! Knowing about `fork()` without asking the kernel.
//!
//! A getpid() on every slot handed out would cost more than the slot. Two
//! counters, moved by handlers that `fork` itself runs (pthread_atfork), cost
//! a load. `vfork`, `posix_spawn` and raw `clone` run no handlers; what follows
//! them is `exec`, which leaves no memory of ours behind.

use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Forks made by this process (and, in a child, by its ancestors before it).
static FORKS: AtomicUsize = AtomicUsize::new(0);
/// How many forks lie between this process and the first of its line.
static GENERATION: AtomicUsize = AtomicUsize::new(0);

extern "C" fn in_parent() {
    FORKS.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::SeqCst);
}

/// A moment in the life of a process, seen from its forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    forks: usize,
    generation: usize,
}

impl Moment {
    /// Now. The first call sets up the handlers.
    pub fn now() -> Self {
        static HANDLERS: Once = Once::new();
        HANDLERS.call_once(|| {
            // SAFETY: the handlers only add to atomics, which is allowed
            // between fork and exec (async-signal-safe), and live for ever.
            // Failure (no memory) leaves the counters still: forks then go
            // unnoticed, as before pthread_atfork existed.
            unsafe { libc::pthread_atfork(None, Some(in_parent), Some(in_child)) };
        });
        Self::read()
    }

    #[inline]
    fn read() -> Self {
        Moment {
            forks: FORKS.load(Ordering::Relaxed),
            generation: GENERATION.load(Ordering::Relaxed),
        }
    }

    /// Is this still the process of that moment?
    #[inline]
    pub fn same_process(self) -> bool {
        GENERATION.load(Ordering::Relaxed) == self.generation
    }

    /// Has this process not forked since? If it has, a child may still look at
    /// memory that was mapped then.
    #[inline]
    pub fn no_fork_since(self) -> bool {
        Self::read() == self
    }
}
