//! The pool: slots that are kept and handed out again.
//!
//! A request never waits. It gets a free slot; else the pool grows, as far as
//! the budget goes; else it gets ordinary memory, counted as an overflow.

use std::fmt;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::block::Block;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::fork::Moment;
use crate::host::HostAlloc;
use crate::os;
use crate::slot::{Mem, Segment, SlotMut};
use crate::sync::{Arc, Mutex, lock};

/// Slots smaller than this come several at a time: one mapping, one lock.
const SEGMENT_BYTES: usize = 256 << 10;

/// A pool of slots of about the same size.
///
/// Dropping the pool gives back what is free; a slot in use goes when its user
/// drops it.
pub struct Pool {
    home: Arc<Home>,
}

/// What slots go back to.
pub(crate) struct Home {
    alloc: StdArc<dyn HostAlloc>,
    budget: StdArc<Budget>,
    made: Moment,
    state: Mutex<State>,
    /// Slots to have without counting as growth; also how many stay when free.
    base: AtomicUsize,
    overflowed: AtomicU64,
}

struct State {
    /// Slots that nobody uses.
    free: Vec<Free>,
    /// Set when the pool is dropped: what comes back is not kept.
    closed: bool,
    counts: Counts,
}

struct Free {
    segment: Arc<Segment>,
    offset: usize,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    slots: usize,
    reserved: usize,
    in_use: usize,
    asked: usize,
    /// The most slots in use at a time since the last trim.
    peak: usize,
    grown: u64,
}

/// What a pool holds: see [`Pool::stats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Slots had from the allocator and not given back.
    pub slots: usize,
    /// Their bytes, whole pages.
    pub reserved: usize,
    /// Slots handed out and not yet dropped, those of ordinary memory aside.
    pub in_use: usize,
    /// Bytes that their users asked for.
    pub asked: usize,
    /// Times the pool had more made, beyond its base number.
    pub grown: u64,
    /// Requests that got ordinary memory, because the budget was used up or
    /// the lock was refused.
    pub overflowed: u64,
    /// Was the memory had to be locked (by the system or the driver)?
    pub locks: bool,
}

impl Pool {
    /// An empty pool over `alloc`, whose locked bytes count against `budget`.
    pub fn new(alloc: StdArc<dyn HostAlloc>, budget: StdArc<Budget>) -> Self {
        Pool {
            home: Arc::new(Home {
                alloc,
                budget,
                made: Moment::now(),
                state: Mutex::new(State {
                    free: Vec::new(),
                    closed: false,
                    counts: Counts::default(),
                }),
                base: AtomicUsize::new(1),
                overflowed: AtomicU64::new(0),
            }),
        }
    }

    /// Sets the base number of slots: as many small slots as that are made at
    /// once, and as many free slots are kept at the next [`trim`](Pool::trim).
    pub fn set_base(&self, slots: usize) {
        self.home.base.store(slots.max(1), Ordering::Relaxed);
    }

    /// A slot of at least `bytes` bytes, for one writer. Never waits.
    ///
    /// # Errors
    /// If not even ordinary memory of that size can be had; and in a process
    /// forked after the pool was made.
    pub fn acquire(&self, bytes: usize) -> Result<SlotMut> {
        let home = &self.home;
        if !home.made.same_process() {
            return Err(Error::fork("pool"));
        }
        if bytes == 0 {
            return Ok(SlotMut::from(Block::zeroed(0)?));
        }
        if let Some(free) = home.take_free(bytes) {
            return Ok(home.hand_out(free, bytes));
        }
        match home.grow(bytes)? {
            Some(free) => Ok(home.hand_out(free, bytes)),
            None => {
                let before = home.overflowed.fetch_add(1, Ordering::Relaxed);
                if before == 0 {
                    tracing::debug!(bytes, "a slot of ordinary memory: the budget is used up");
                }
                Ok(SlotMut::from(Block::zeroed(bytes)?))
            }
        }
    }

    /// Gives back free slots beyond what the last epoch needed: the base
    /// number, or the most in use at a time since the last trim.
    pub fn trim(&self) {
        let base = self.home.base.load(Ordering::Relaxed);
        let dropped: Vec<Free> = {
            let mut state = lock(&self.home.state);
            let keep = base.max(state.counts.peak).saturating_sub(state.counts.in_use);
            state.counts.peak = state.counts.in_use;
            let from = keep.min(state.free.len());
            state.drop_free(from)
        };
        drop(dropped);
    }

    /// Gives back every free slot.
    pub fn release(&self) {
        let dropped = lock(&self.home.state).drop_free(0);
        drop(dropped);
    }

    /// What the pool holds now.
    pub fn stats(&self) -> PoolStats {
        let Counts { slots, reserved, in_use, asked, grown, .. } = lock(&self.home.state).counts;
        PoolStats {
            slots,
            reserved,
            in_use,
            asked,
            grown,
            overflowed: self.home.overflowed.load(Ordering::Relaxed),
            locks: self.home.alloc.locks(),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.home.made.same_process() {
            // The lock may be held for ever by a thread that is not here.
            return;
        }
        let dropped = {
            let mut state = lock(&self.home.state);
            state.closed = true;
            state.drop_free(0)
        };
        // Unmapping takes time; the lock is not held meanwhile.
        drop(dropped);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("alloc", &self.home.alloc).finish_non_exhaustive()
    }
}

impl State {
    /// Takes the free slots from position `from` on out of the pool.
    fn drop_free(&mut self, from: usize) -> Vec<Free> {
        let dropped = self.free.split_off(from);
        for free in &dropped {
            self.forget(&free.segment);
        }
        dropped
    }

    /// A slot of `segment` leaves the pool for good.
    fn forget(&mut self, segment: &Segment) {
        self.counts.slots -= 1;
        self.counts.reserved -= os::round_to_pages(segment.slot_bytes);
    }
}

impl Home {
    /// The free slot that came back last and is large enough.
    fn take_free(&self, bytes: usize) -> Option<Free> {
        let mut state = lock(&self.state);
        let at = state.free.iter().rposition(|free| free.segment.slot_bytes >= bytes)?;
        let free = state.free.swap_remove(at);
        state.counts.take(bytes);
        Some(free)
    }

    fn hand_out(self: &Arc<Self>, free: Free, bytes: usize) -> SlotMut {
        let Free { segment, offset } = free;
        SlotMut::new(Mem::new(segment, offset, bytes, Some(Arc::clone(self)), Moment::now()))
    }

    /// Has new slots made and takes one of them. `None`: they would not fit the
    /// budget, or the lock was refused.
    fn grow(&self, bytes: usize) -> Result<Option<Free>> {
        let (count, small, growth) = {
            let mut state = lock(&self.state);
            // The free ones are too small, or there are none. Those are in the
            // way: sizes have changed.
            let small = state.drop_free(0);
            let base = self.base.load(Ordering::Relaxed);
            let missing = base.saturating_sub(state.counts.slots);
            (self.segment_slots(bytes, base, missing), small, missing == 0)
        };
        drop(small);
        let slot_bytes = os::round_to_pages(bytes);
        let found = [count, 1].into_iter().find_map(|count| {
            let charged = slot_bytes.checked_mul(count)?;
            (!self.alloc.locks() || self.budget.take(charged)).then_some((count, charged))
        });
        let Some((count, charged)) = found else { return Ok(None) };
        // A lone slot is as long as was asked; its mapping has whole pages.
        let slot_bytes = if count == 1 { bytes } else { slot_bytes };
        let budget = self.alloc.locks().then(|| StdArc::clone(&self.budget));
        let block = match self.alloc.alloc(slot_bytes * count) {
            Ok(block) => block,
            Err(error) => {
                if let Some(budget) = budget {
                    budget.give(charged);
                }
                if error.is_limit() {
                    tracing::warn!(%error, "ordinary memory is used instead");
                    return Ok(None);
                }
                return Err(error);
            }
        };
        let segment = Arc::new(Segment { block, slot_bytes, charged, budget });
        let free = |i: usize| Free { segment: Arc::clone(&segment), offset: i * slot_bytes };
        let mut state = lock(&self.state);
        state.counts.slots += count;
        state.counts.reserved += os::round_to_pages(slot_bytes) * count;
        state.counts.grown += u64::from(growth);
        state.counts.take(bytes);
        // A pool that was closed meanwhile keeps nothing: not possible here,
        // the caller holds it.
        state.free.extend((1..count).map(free));
        Ok(Some(free(0)))
    }

    /// How many slots to have made at once.
    fn segment_slots(&self, bytes: usize, base: usize, missing: usize) -> usize {
        let fit = SEGMENT_BYTES / os::round_to_pages(bytes).max(1);
        if missing > 0 {
            // Together, if they are small.
            if fit > 1 { missing } else { 1 }
        } else {
            fit.clamp(1, base)
        }
    }

    /// Takes a slot back. Not to be reused: it leaves the pool.
    pub(crate) fn give_back(&self, segment: Arc<Segment>, offset: usize, asked: usize, reuse: bool) {
        let mut state = lock(&self.state);
        state.counts.in_use -= 1;
        state.counts.asked -= asked;
        if reuse && !state.closed {
            state.free.push(Free { segment, offset });
            return;
        }
        state.forget(&segment);
        drop(state);
        // Unmapped here, with the lock free, if it was the segment's last.
        drop(segment);
    }
}

impl Counts {
    fn take(&mut self, asked: usize) {
        self.in_use += 1;
        self.asked += asked;
        self.peak = self.peak.max(self.in_use);
    }
}
