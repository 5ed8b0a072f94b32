//! How much memory may be locked.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, RAISE_RLIMIT, Result};
use crate::os;

/// Where the limit comes from: what can be done about it depends on that.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Set,
    Quarter,
    Rlimit,
}

/// A bound on locked bytes, shared by the pools of one loader.
///
/// The default is a quarter of the memory that the process can still have; for
/// memory locked by the operating system also no more than the soft limit
/// leaves (see [`Budget::for_os_lock`]).
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    source: Source,
    used: AtomicUsize,
}

impl Source {
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Source::Set => "as set; raise pinned_budget",
            Source::Quarter => {
                "a quarter of the memory available to this process; raise pinned_budget"
            }
            Source::Rlimit => RAISE_RLIMIT,
        }
    }
}

impl Budget {
    /// At most `bytes`, as the user said.
    pub fn of(bytes: usize) -> Self {
        Self::with(bytes, Source::Set)
    }

    /// A quarter of the memory available to the process, its cgroup included.
    pub fn quarter() -> Self {
        let quarter = usize::try_from(os::available_memory() / 4).unwrap_or(usize::MAX);
        Self::with(quarter, Source::Quarter)
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
                    return Self::with(left, Source::Rlimit);
                }
                budget
            }
            None => budget,
        }
    }

    fn with(limit: usize, source: Source) -> Self {
        Budget { limit, source, used: AtomicUsize::new(0) }
    }

    /// The bound, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Where it comes from, and what to do if it is too little.
    pub fn remedy(&self) -> &'static str {
        self.source.remedy()
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
            _ => Err(Error::budget(slots, slot_bytes, self.limit, self.source)),
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
