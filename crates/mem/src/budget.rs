//! How much memory may be locked.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::os;

/// A bound on locked bytes, shared by the pools of one loader.
///
/// The default is a quarter of the memory that the process can still have; for
/// memory locked by the operating system also no more than the soft limit
/// leaves (see [`Budget::for_os_lock`]).
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    /// Where the limit comes from, for messages.
    why: &'static str,
    used: AtomicUsize,
}

impl Budget {
    /// At most `bytes`, as the user said.
    pub fn of(bytes: usize) -> Self {
        Self::with(bytes, "as set")
    }

    /// A quarter of the memory available to the process, its cgroup included.
    pub fn quarter() -> Self {
        let quarter = usize::try_from(os::available_memory() / 4).unwrap_or(usize::MAX);
        Self::with(quarter, "a quarter of the memory available to this process")
    }

    /// For memory locked by the operating system: `set`, or a quarter, and at
    /// most what the soft RLIMIT_MEMLOCK leaves, unless this process may pass
    /// it (CAP_IPC_LOCK).
    pub fn for_os_lock(set: Option<usize>) -> Self {
        let budget = set.map_or_else(Self::quarter, Self::of);
        match os::lock_limit() {
            Some(limit) => {
                let left = limit.saturating_sub(os::locked_bytes());
                let left = usize::try_from(left).unwrap_or(usize::MAX);
                if left < budget.limit {
                    return Self::with(left, "what RLIMIT_MEMLOCK leaves; see `ulimit -l`");
                }
                budget
            }
            None => budget,
        }
    }

    fn with(limit: usize, why: &'static str) -> Self {
        Budget { limit, why, used: AtomicUsize::new(0) }
    }

    /// The bound, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes taken.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Do `slots` slots of `slot_bytes` bytes fit the bound?
    ///
    /// # Errors
    /// If not: an error with all the figures.
    pub fn check(&self, slots: usize, slot_bytes: usize) -> Result<()> {
        match slots.checked_mul(slot_bytes) {
            Some(bytes) if bytes <= self.limit => Ok(()),
            _ => Err(Error::budget(slots, slot_bytes, self.limit, self.why)),
        }
    }

    /// Takes `bytes`, if they fit.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|&sum| sum <= self.limit)
            })
            .is_ok()
    }

    pub(crate) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
