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

/// Locks, also when a thread has panicked with the lock held: nothing here is
/// left half done by a panic, since no user code runs under our locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
