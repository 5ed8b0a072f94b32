//! The pool: slots that are kept and handed out again.
//!
//! A request never waits for a slot in use. It gets a free slot; else the pool
//! has more made, as far as the budget goes; else it gets ordinary memory,
//! counted as an overflow.

use std::fmt;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc as StdArc, TryLockError};

use crate::block::Block;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::fork::Moment;
use crate::host::HostAlloc;
use crate::os;
use crate::slot::{Charge, Mem, Segment, SlotMut};
use crate::sync::{Arc, Mutex, lock};

/// Slots smaller than this come several at a time: one mapping, one lock.
const SEGMENT_BYTES: usize = 256 << 10;

/// A pool of slots of about the same size.
///
/// Dropping the pool gives back what is free; a slot in use goes when its user
/// drops it.
///
/// In a process forked after the pool was made, a request is an error, and
/// everything else does nothing: the memory is the parent's.
pub struct Pool {
    home: Arc<Home>,
}

/// What slots go back to.
pub(crate) struct Home {
    alloc: StdArc<dyn HostAlloc>,
    /// What the allocator said of itself when the pool was made: what is taken
    /// from the budget and what is given back must not depend on its mood.
    locks: bool,
    budget: StdArc<Budget>,
    made: Moment,
    state: Mutex<State>,
    /// Slots that came back since `state` was last short of them. They have a
    /// lock of their own, so that those who give back (the loop that uses the
    /// batches) and those who take (the workers) do not wait for each other.
    /// Taken after `state`, never before.
    came_back: Mutex<CameBack>,
    /// Slots handed out and not dropped, and the bytes asked for.
    in_use: AtomicUsize,
    asked: AtomicUsize,
    /// Held by the thread that has several slots made at once: who comes
    /// meanwhile finds them made. Taken before `state`, never after.
    making: Mutex<()>,
    /// Slots to have without counting as growth; also how many stay when free.
    base: AtomicUsize,
    overflowed: AtomicU64,
    waits: AtomicU64,
    /// Bytes of the segments alive. Each counts itself out ([`Charge`]).
    reserved: StdArc<AtomicUsize>,
}

struct State {
    /// Slots that nobody uses, the longest unused first.
    free: Vec<Free>,
    counts: Counts,
    /// Slots that a thread is having made just now.
    coming: usize,
    /// The least number of bytes that the system refused to lock. As many are
    /// not asked for again before some are given back, or the pool is trimmed:
    /// to map and touch them only to be refused takes long.
    refused: usize,
    /// How it said so the last time.
    refusal: Option<StdArc<Error>>,
}

#[derive(Default)]
struct CameBack {
    free: Vec<Free>,
    /// Set when the pool is dropped: what comes back is not kept.
    closed: bool,
}

/// I1: as long as a slot is in one of the lists there is no `Mem` of it.
struct Free {
    segment: Arc<Segment>,
    offset: usize,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    slots: usize,
    /// The most slots in use at a time since the last trim.
    peak: usize,
    grown: u64,
}

/// What a pool holds: see [`Pool::stats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Slots had from the allocator and not given back.
    pub slots: usize,
    /// Bytes had from the allocator and not given back, in whole pages. Small
    /// slots share a segment, which is given back with the last of them.
    pub reserved: usize,
    /// Slots handed out and not yet dropped, those of ordinary memory (and
    /// those without bytes) aside.
    pub in_use: usize,
    /// Bytes that their users asked for.
    pub asked: usize,
    /// Times the pool had more made, beyond its base number.
    pub grown: u64,
    /// Requests that got ordinary memory, because the budget was used up or
    /// the lock was refused.
    pub overflowed: u64,
    /// Times a request waited, for another thread that was having small slots
    /// made. None waits for a slot in use.
    pub waits: u64,
    /// Was the memory had to be locked (by the system or the driver)?
    pub locks: bool,
}

impl Pool {
    /// An empty pool over `alloc`, whose locked bytes count against `budget`.
    pub fn new(alloc: StdArc<dyn HostAlloc>, budget: StdArc<Budget>) -> Self {
        Pool {
            home: Arc::new(Home {
                locks: alloc.locks(),
                alloc,
                budget,
                made: Moment::now(),
                state: Mutex::new(State {
                    free: Vec::new(),
                    counts: Counts::default(),
                    coming: 0,
                    refused: usize::MAX,
                    refusal: None,
                }),
                came_back: Mutex::new(CameBack::default()),
                in_use: AtomicUsize::new(0),
                asked: AtomicUsize::new(0),
                making: Mutex::new(()),
                base: AtomicUsize::new(1),
                overflowed: AtomicU64::new(0),
                waits: AtomicU64::new(0),
                reserved: StdArc::default(),
            }),
        }
    }

    /// Sets the base number of slots: as many small slots as that are made at
    /// once, and as many free slots are kept at the next [`trim`](Pool::trim).
    pub fn set_base(&self, slots: usize) {
        self.home.base.store(slots.max(1), Ordering::Relaxed);
    }

    /// A slot of at least `bytes` bytes, for one writer. Waits for no slot in
    /// use; only for another thread that is having slots made, if that is
    /// where this one will come from.
    ///
    /// # Errors
    /// If the allocator has no memory of that size (where it has, but may not
    /// lock it, ordinary memory is taken), or ordinary memory was taken and
    /// there is none; and in a process forked after the pool was made.
    pub fn acquire(&self, bytes: usize) -> Result<SlotMut> {
        let home = &self.home;
        if !home.made.same_process() {
            return Err(Error::fork("pool"));
        }
        if bytes == 0 {
            return Ok(SlotMut::from(Block::zeroed(0)?));
        }
        let free = lock(&home.state).take_free(home, bytes);
        let free = match free {
            Some(free) => Some(free),
            None => home.grow(bytes)?,
        };
        if let Some(Free { segment, offset }) = free {
            // I1: the slot has left the list.
            let mem = Mem::new(segment, offset, bytes, Some(Arc::clone(home)));
            return Ok(SlotMut::new(mem));
        }
        if home.overflowed.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                bytes,
                budget = home.budget.limit(),
                taken = home.budget.used(),
                "ordinary memory for a slot: the budget is used up, or the lock was refused \
                 (said once)"
            );
        }
        Ok(SlotMut::from(Block::zeroed(bytes)?))
    }

    /// Gives back free slots beyond what the last epoch needed: the base
    /// number, or the most in use at a time since the last trim. Those longest
    /// unused go first.
    pub fn trim(&self) {
        if !self.home.made.same_process() {
            return;
        }
        let base = self.home.base.load(Ordering::Relaxed);
        let dropped = {
            let mut state = lock(&self.home.state);
            state.collect(&self.home);
            let in_use = self.home.in_use.load(Ordering::Relaxed);
            let keep = base.max(state.counts.peak).saturating_sub(in_use);
            state.counts.peak = in_use;
            state.refused = usize::MAX;
            let surplus = state.free.len().saturating_sub(keep);
            state.drop_free(surplus)
        };
        // Unmapping takes time: the lock is not held meanwhile. So everywhere.
        drop(dropped);
    }

    /// Gives back every free slot.
    pub fn release(&self) {
        if !self.home.made.same_process() {
            return;
        }
        let dropped = {
            let mut state = lock(&self.home.state);
            state.collect(&self.home);
            state.refused = usize::MAX;
            state.drop_free(usize::MAX)
        };
        drop(dropped);
    }

    /// What the pool holds now. In a forked child, nothing.
    pub fn stats(&self) -> PoolStats {
        let home = &self.home;
        if !home.made.same_process() {
            return PoolStats { locks: home.locks, ..PoolStats::default() };
        }
        let Counts { slots, grown, .. } = lock(&home.state).counts;
        PoolStats {
            slots,
            reserved: home.reserved.load(Ordering::Relaxed),
            in_use: home.in_use.load(Ordering::Relaxed),
            asked: home.asked.load(Ordering::Relaxed),
            grown,
            overflowed: home.overflowed.load(Ordering::Relaxed),
            waits: home.waits.load(Ordering::Relaxed),
            locks: home.locks,
        }
    }

    /// How the lock was refused the last time, if it ever was: bytes asked and
    /// held, the limit, and the remedy.
    pub fn refusal(&self) -> Option<StdArc<Error>> {
        if !self.home.made.same_process() {
            return None;
        }
        lock(&self.home.state).refusal.clone()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.home.made.same_process() {
            // The lock may be held for ever by a thread that is not here, and
            // the allocator may have a driver's handles, which are not to be
            // touched here: nothing of it is ever dropped.
            mem::forget(Arc::clone(&self.home));
            return;
        }
        let dropped = {
            let mut state = lock(&self.home.state);
            lock(&self.home.came_back).closed = true;
            state.collect(&self.home);
            state.drop_free(usize::MAX)
        };
        drop(dropped);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("alloc", &self.home.alloc).finish_non_exhaustive()
    }
}

impl State {
    /// A free slot that is large enough. Those that came back lately are looked
    /// at when no other will do: their lock is the givers'.
    fn take_free(&mut self, home: &Home, bytes: usize) -> Option<Free> {
        let fits = |free: &Free| free.segment.slot_bytes >= bytes;
        let at = self.free.iter().rposition(fits).or_else(|| {
            self.collect(home);
            self.free.iter().rposition(fits)
        })?;
        let free = self.free.remove(at);
        self.took(home, bytes);
        Some(free)
    }

    /// Counts a slot as handed out.
    fn took(&mut self, home: &Home, asked: usize) {
        let in_use = home.in_use.fetch_add(1, Ordering::Relaxed) + 1;
        home.asked.fetch_add(asked, Ordering::Relaxed);
        self.counts.peak = self.counts.peak.max(in_use);
    }

    /// Puts the slots that came back with the free ones.
    fn collect(&mut self, home: &Home) {
        self.free.append(&mut lock(&home.came_back).free);
    }

    /// Takes up to `count` free slots out of the pool for good, the longest
    /// unused first.
    fn drop_free(&mut self, count: usize) -> Vec<Free> {
        let count = count.min(self.free.len());
        for _ in 0..count {
            self.forget_slot();
        }
        self.free.drain(..count).collect()
    }

    /// Would `bytes` fit the budget if all that is free went? If not, or if the
    /// system has refused as much, nothing need go in vain.
    fn might_fit(&self, bytes: usize, budget: &Budget) -> bool {
        let pages = os::round_to_pages(bytes);
        bytes < self.refused && self.to_drop(pages, budget).is_some()
    }

    /// How many free slots, the longest unused first, have to go for `pages`
    /// more bytes to fit the budget.
    fn to_drop(&self, pages: usize, budget: &Budget) -> Option<usize> {
        let mut room = budget.limit().saturating_sub(budget.used());
        if room >= pages {
            return Some(0);
        }
        let enough = self.free.iter().position(|free| {
            room = room.saturating_add(os::round_to_pages(free.segment.slot_bytes));
            room >= pages
        });
        enough.map(|last| last + 1)
    }

    /// A slot leaves the pool for good.
    fn forget_slot(&mut self) {
        self.counts.slots -= 1;
        self.refused = usize::MAX;
    }
}

/// Slots that a thread is having made. Dropped, they are not coming any more.
struct Coming<'a> {
    home: &'a Home,
    count: usize,
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        // An allocator that panics must not take the count along.
        if self.count > 0 {
            lock(&self.home.state).coming -= self.count;
        }
    }
}

impl Home {
    /// Has new slots made and takes one of them, or one that came free
    /// meanwhile. `None`: they would not fit the budget, or the lock was
    /// refused.
    fn grow(&self, bytes: usize) -> Result<Option<Free>> {
        // Several slots at a time, if they are small. Then one thread at a
        // time: two would make the base number twice, or one be refused by the
        // budget what the other is about to put down here.
        let together = SEGMENT_BYTES / os::round_to_pages(bytes);
        let making = (together > 1).then(|| match self.making.try_lock() {
            Ok(making) => making,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.waits.fetch_add(1, Ordering::Relaxed);
                lock(&self.making)
            }
        });
        let base = self.base.load(Ordering::Relaxed);
        let (mut coming, in_the_way, growth) = {
            let mut state = lock(&self.state);
            if let Some(free) = state.take_free(self, bytes) {
                return Ok(Some(free));
            }
            if self.locks && !state.might_fit(bytes, &self.budget) {
                return Ok(None);
            }
            let there = state.counts.slots + state.coming;
            let missing = base.saturating_sub(there);
            let count = match missing {
                0 => together.clamp(1, base),
                missing if together > 1 => missing,
                _ => 1,
            };
            // Sizes have changed: what is free is too small. It makes room,
            // one for one, for what comes beyond the base number.
            let surplus = (there + count).saturating_sub(base);
            let in_the_way = state.drop_free(surplus);
            let growth = surplus > in_the_way.len();
            state.coming += count;
            (Coming { home: self, count }, in_the_way, growth)
        };
        drop(in_the_way);
        let mut segment = None;
        for count in [coming.count, 1] {
            segment = self.make(bytes, count)?;
            if segment.is_some() || coming.count == 1 {
                break;
            }
        }
        if segment.is_none() && self.locks {
            // It might fit, were it not for what is free and too small.
            let in_the_way = {
                let mut state = lock(&self.state);
                if let Some(free) = state.take_free(self, bytes) {
                    return Ok(Some(free));
                }
                let count = state.to_drop(os::round_to_pages(bytes), &self.budget);
                state.drop_free(count.unwrap_or(0))
            };
            if !in_the_way.is_empty() {
                drop(in_the_way);
                segment = self.make(bytes, 1)?;
            }
        }
        let Some((segment, count)) = segment else { return Ok(None) };
        let slot_bytes = segment.slot_bytes;
        // I1: one entry for each slot, the first of which is not put down.
        let free = |i: usize| Free { segment: Arc::clone(&segment), offset: i * slot_bytes };
        let mut state = lock(&self.state);
        state.coming -= mem::take(&mut coming.count);
        state.counts.slots += count;
        state.counts.grown += u64::from(growth);
        state.took(self, bytes);
        state.free.extend((1..count).map(free));
        drop(state);
        drop(making);
        Ok(Some(free(0)))
    }

    /// Has a segment of `count` slots made. `None`: they would not fit the
    /// budget, or the lock was refused.
    fn make(&self, bytes: usize, count: usize) -> Result<Option<(Arc<Segment>, usize)>> {
        // A lone slot is as long as was asked; its mapping has whole pages.
        let slot_bytes = if count == 1 { bytes } else { os::round_to_pages(bytes) };
        let Some(total) = slot_bytes.checked_mul(count) else { return Ok(None) };
        if total >= lock(&self.state).refused {
            return Ok(None);
        }
        let budget = self.locks.then_some(&self.budget);
        // Given back by its drop, also when the allocator fails or panics.
        let Some(charge) = Charge::take(os::round_to_pages(total), budget, &self.reserved) else {
            return Ok(None);
        };
        match self.alloc.alloc(total) {
            Ok(block) if block.len() >= total => {
                // I5: as checked.
                let segment = Segment { block, slot_bytes, charge: Some(charge) };
                Ok(Some((Arc::new(segment), count)))
            }
            Ok(block) => Err(short(total, &block)),
            Err(error) if error.is_limit() => {
                tracing::debug!(%error, "a lock was refused");
                let error = Some(StdArc::new(error));
                let before = {
                    let mut state = lock(&self.state);
                    state.refused = state.refused.min(total);
                    mem::replace(&mut state.refusal, error)
                };
                // It may hold a foreign error: not dropped under the lock.
                drop(before);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes a slot back. Not to be reused: it leaves the pool.
    ///
    /// I1: the caller is the `Mem` of this slot, and ends with this call.
    pub(crate) fn give_back(
        &self,
        segment: Arc<Segment>,
        offset: usize,
        asked: usize,
        reuse: bool,
    ) {
        self.in_use.fetch_sub(1, Ordering::Relaxed);
        self.asked.fetch_sub(asked, Ordering::Relaxed);
        if reuse {
            let mut came_back = lock(&self.came_back);
            if !came_back.closed {
                came_back.free.push(Free { segment, offset });
                return;
            }
        }
        lock(&self.state).forget_slot();
        drop(segment);
    }
}

/// The allocator broke its word.
pub(crate) fn short(bytes: usize, block: &Block) -> Error {
    let text = format!("the allocator gave a block of {} bytes", block.len());
    Error::no_memory(bytes, io::Error::other(text))
}
