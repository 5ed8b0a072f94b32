//! The memory of a loader: which kind, how much, and two pools of it.

use std::fmt;
use std::sync::Arc;

use pinfeed_mem::{
    Budget, Bytes, HostAlloc, Lock, PageLock, Pageable, Part, Pool, PoolStats, SlotMut,
};

use crate::error::Result;
use crate::warnings::Warnings;

/// What memory batches are made in: the builder's `pin_memory`.
///
/// A `bool` is one too: `false` is [`Off`](PinMemory::Off), `true` is
/// [`On`](PinMemory::On).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum PinMemory {
    /// Ordinary memory.
    #[default]
    Off,
    /// Page-locked by the CUDA driver. This version does not use CUDA yet: one
    /// warning per loader, and ordinary memory.
    On,
    /// Locked by the operating system (`mlock`): resident, never paged out,
    /// but no pinned memory to CUDA.
    PageLock,
    /// From an allocator of your own.
    Alloc(Arc<dyn HostAlloc>),
}

impl PinMemory {
    /// From an allocator of your own.
    pub fn alloc(own: impl HostAlloc + 'static) -> Self {
        PinMemory::Alloc(Arc::new(own))
    }
}

impl From<bool> for PinMemory {
    fn from(on: bool) -> Self {
        if on { PinMemory::On } else { PinMemory::Off }
    }
}

/// As the command line and reports call it.
impl fmt::Display for PinMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PinMemory::Off => "off",
            PinMemory::On => "on",
            PinMemory::PageLock => "lock",
            PinMemory::Alloc(_) => "own allocator",
        })
    }
}

/// Why memory of a batch is not page-locked by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unpinned {
    /// `pin_memory` is off.
    NotAsked,
    /// This version does not use CUDA yet.
    NoCuda,
    /// Only the operating system's lock was asked for.
    OsLockOnly,
    /// The loader's budget was used up, or the lock was refused: ordinary
    /// memory instead.
    OverBudget,
    /// Text is kept per sample, outside of page-locked memory.
    NotATensor,
    /// The allocator given does not have the driver lock its memory.
    OwnAllocator,
}

impl fmt::Display for Unpinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unpinned::NotAsked => "pin_memory is off",
            Unpinned::NoCuda => "this version of pinfeed has no CUDA yet",
            Unpinned::OsLockOnly => "locked by the operating system only (PageLock)",
            Unpinned::OverBudget => "over pinned_budget or the system's limit: ordinary memory",
            Unpinned::NotATensor => "text is kept per sample",
            Unpinned::OwnAllocator => "the allocator given does not pin",
        })
    }
}

/// The pools of one loader: large columns and small ones apart.
#[derive(Debug)]
pub(crate) struct Memory {
    policy: PinMemory,
    budget: Arc<Budget>,
    /// By [`Part`].
    pools: [Pool; 2],
    /// What the allocator said of itself, once.
    locks: bool,
    warnings: Warnings,
}

impl Memory {
    /// Pools by the policy; `budget` bounds what is locked.
    pub(crate) fn new(policy: PinMemory, budget: Option<usize>) -> Self {
        let alloc: Arc<dyn HostAlloc> = match &policy {
            // The driver's allocator has its place here once there is one.
            PinMemory::Off | PinMemory::On => Arc::new(Pageable),
            PinMemory::PageLock => Arc::new(PageLock),
            PinMemory::Alloc(own) => Arc::clone(own),
        };
        let budget = Arc::new(match policy {
            PinMemory::PageLock => Budget::for_os_lock(budget),
            _ => budget.map_or_else(Budget::quarter, Budget::of),
        });
        let locks = alloc.locks();
        let pool = || Pool::new(Arc::clone(&alloc), Arc::clone(&budget));
        Memory { policy, pools: [pool(), pool()], budget, locks, warnings: Warnings::default() }
    }

    pub(crate) fn policy(&self) -> &PinMemory {
        &self.policy
    }

    /// Is what it hands out locked, as far as the budget goes?
    pub(crate) fn locks(&self) -> bool {
        self.locks
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What the loader has to say that is no error.
    pub(crate) fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    #[inline]
    pub(crate) fn acquire(&self, part: Part, bytes: usize) -> Result<SlotMut> {
        let pool = &self.pools[part as usize];
        let slot = pool.acquire(bytes)?;
        if slot.lock() == Lock::default() && self.locks() {
            self.warn_of_overflow(pool, bytes);
        }
        Ok(slot)
    }

    #[cold]
    fn warn_of_overflow(&self, pool: &Pool, bytes: usize) {
        self.warnings.once("overflow", || {
            let limit = Bytes(self.budget.limit() as u64);
            let why = match pool.refusal() {
                Some(refusal) => refusal.to_string(),
                None => {
                    let remedy = self.budget.remedy();
                    format!("the budget for page-locked memory is {limit} ({remedy})")
                }
            };
            format!("ordinary memory for a batch ({}): {why}", Bytes(bytes as u64))
        });
    }

    /// Sets the base number of slots.
    pub(crate) fn set_base(&self, base: usize) {
        self.pools.iter().for_each(|pool| pool.set_base(base));
    }

    /// Gives back what the last epoch has not needed.
    pub(crate) fn trim(&self) {
        self.pools.iter().for_each(Pool::trim);
    }

    pub(crate) fn release(&self) {
        self.pools.iter().for_each(Pool::release);
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        MemoryStats {
            slab: self.pools[Part::Slab as usize].stats(),
            small: self.pools[Part::Small as usize].stats(),
            budget: self.budget.limit(),
            charged: self.budget.used(),
        }
    }

    /// Why a slot of ours is not pinned.
    pub(crate) fn why_unpinned(&self, os_locked: bool) -> Unpinned {
        match &self.policy {
            PinMemory::Off => Unpinned::NotAsked,
            PinMemory::On => Unpinned::NoCuda,
            PinMemory::PageLock if os_locked => Unpinned::OsLockOnly,
            PinMemory::PageLock => Unpinned::OverBudget,
            PinMemory::Alloc(_) => Unpinned::OwnAllocator,
        }
    }
}

/// What a loader's memory comes to: see
/// [`DataLoader::memory`](crate::DataLoader::memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Slots of the large fields.
    pub slab: PoolStats,
    /// Slots of the small fields (at most 64 KiB of a batch together).
    pub small: PoolStats,
    /// The bound on locked bytes.
    pub budget: usize,
    /// Locked bytes that count against it, of slots in use and free ones.
    pub charged: usize,
}
