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

    /// Do `slots` slots of `slot_bytes` bytes, in whole pages each, fit the
    /// bound? What is taken already does not count.
    ///
    /// # Errors
    /// If not: an error with all the figures.
    pub fn check(&self, slots: usize, slot_bytes: usize) -> Result<()> {
        match slots.checked_mul(os::round_to_pages(slot_bytes)) {
            Some(bytes) if bytes <= self.limit => Ok(()),
            _ => Err(Error::budget(slots, slot_bytes, self.limit, self.why)),
        }
    }

    /// Takes `bytes`, if they fit. Relaxed, here and below: the number guards
    /// no memory, and no update of it is lost.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_fits() {
        let budget = Budget::of(10);
        assert!(budget.take(7));
        assert!(!budget.take(4));
        assert!(!budget.take(usize::MAX), "no wrapping around");
        assert!(budget.take(3));
        assert_eq!(budget.used(), 10);
        budget.give(7);
        assert_eq!(budget.used(), 3);
    }

    #[test]
    fn checks_whole_pages() {
        let page = os::page_size();
        let budget = Budget::of(4 * page - 1);
        assert!(budget.check(3, page - 1).is_ok());
        // As bytes these would fit, but slots are pages.
        let error = budget.check(4, page - 1).unwrap_err();
        assert!(error.is_limit());
        let text = error.to_string();
        for figure in ["4 slots", &(page - 1).to_string(), &(4 * page - 1).to_string(), "as set"] {
            assert!(text.contains(figure), "{text}");
        }
        assert!(budget.check(usize::MAX, 2).is_err());
        assert!(Budget::of(usize::MAX).check(2, usize::MAX).is_err());
    }

    #[test]
    fn a_quarter_is_something() {
        assert!(Budget::quarter().limit() > 0);
    }
}
