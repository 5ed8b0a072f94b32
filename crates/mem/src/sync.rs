//! The standard library's synchronisation, or loom's model of it.
//!
//! Everything in this crate that a model explores takes its types from here.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering},
};

/// Locks, also when a thread has panicked with the lock held: nothing of ours
/// is left half done by a panic. Foreign code runs under two locks only, an
/// allocator's `alloc` (`Home::making`, which guards no data) and the closure
/// of `Claim::lay` (the grid is put in place after it has returned).
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
