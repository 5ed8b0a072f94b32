//! A slot: memory for one batch's worth of rows, first written, then read.

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::block::{Block, Lock};
use crate::budget::Budget;
use crate::error::Result;
use crate::fork::Moment;
use crate::host::HostAlloc;
use crate::pool::{Home, short};
use crate::sync::Arc;

/// A block cut into equal slots.
///
/// I5: every slot lies within the block.
pub(crate) struct Segment {
    pub(crate) block: Block,
    /// Bytes of each slot: whole pages where there are several.
    pub(crate) slot_bytes: usize,
    /// What the block's bytes count as; none if it is no pool's. Below the
    /// block, so that it is given back after the memory is.
    #[expect(dead_code, reason = "kept to be given back by its own drop")]
    pub(crate) charge: Option<Charge>,
}

/// Bytes that count against a budget, and as reserved by a pool, until this is
/// dropped.
pub(crate) struct Charge {
    bytes: usize,
    budget: Option<StdArc<Budget>>,
    reserved: StdArc<AtomicUsize>,
}

impl Charge {
    /// None, if they do not fit the budget.
    pub(crate) fn take(
        bytes: usize,
        budget: Option<&StdArc<Budget>>,
        reserved: &StdArc<AtomicUsize>,
    ) -> Option<Self> {
        if budget.is_some_and(|budget| !budget.take(bytes)) {
            return None;
        }
        reserved.fetch_add(bytes, Ordering::Relaxed);
        Some(Charge { bytes, budget: budget.cloned(), reserved: StdArc::clone(reserved) })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some(budget) = &self.budget {
            budget.give(self.bytes);
        }
    }
}

/// A slot's memory, wherever it is in its life. Not `Clone`: one owner.
///
/// I1: for each slot of a segment there is at most one `Mem`, or one entry in
/// its pool's free list, never both.
pub(crate) struct Mem {
    segment: ManuallyDrop<Arc<Segment>>,
    offset: usize,
    /// Bytes asked for; the slot may have more.
    len: usize,
    /// The pool to go back to; none for memory that is no pool's.
    home: Option<Arc<Home>>,
    taken: Moment,
}

impl Mem {
    /// The slot at `offset`; the caller keeps I1.
    pub(crate) fn new(
        segment: Arc<Segment>,
        offset: usize,
        len: usize,
        home: Option<Arc<Home>>,
    ) -> Self {
        debug_assert!(len <= segment.slot_bytes && offset + len <= segment.block.len());
        // After the slot was had: a fork before this moment saw it free, or in
        // nobody's hands.
        let taken = Moment::now();
        Mem { segment: ManuallyDrop::new(segment), offset, len, home, taken }
    }

    fn as_ptr(&self) -> NonNull<u8> {
        // SAFETY: `offset` is within the block (I5), which lives as long as
        // the segment, which this value keeps.
        unsafe { self.segment.block.as_ptr().add(self.offset) }
    }

    fn lock(&self) -> Lock {
        self.segment.block.lock()
    }
}

impl Drop for Mem {
    fn drop(&mut self) {
        // SAFETY: taken once, in drop; `segment` is not used after.
        let segment = unsafe { ManuallyDrop::take(&mut self.segment) };
        // Memory of its own: its block gives it back, or, in a forked child,
        // knows better.
        let Some(home) = self.home.take() else { return };
        if !self.taken.same_process() {
            // A forked child: the pool's lock may be held for ever by a thread
            // that is not here, and its pages are not ours to unmap.
            mem::forget(segment);
            mem::forget(home);
            return;
        }
        // A child made meanwhile still sees shared pages: they are not written
        // again. Private ones it has a copy of.
        let reuse = self.taken.no_fork_since() || !segment.block.is_shared();
        home.give_back(segment, self.offset, self.len, reuse);
    }
}

/// A slot being written. One writer at a time: `&mut` gives the bytes.
///
/// [`seal`](SlotMut::seal) ends the writing, by type:
///
/// ```compile_fail,E0382
/// # use pinfeed_mem::{Pageable, SlotMut};
/// let mut slot = SlotMut::alone(&Pageable, 8).unwrap();
/// let sealed = slot.seal();
/// slot.as_mut_slice()[0] = 1; // moved: a sealed slot has no writer
/// ```
///
/// There are no two writers, neither by borrowing
///
/// ```compile_fail,E0499
/// # use pinfeed_mem::{Pageable, SlotMut};
/// let mut slot = SlotMut::alone(&Pageable, 8).unwrap();
/// let one = slot.as_mut_slice();
/// let two = slot.as_mut_slice();
/// one[0] = two[0];
/// ```
///
/// nor by a copy:
///
/// ```compile_fail,E0599
/// # use pinfeed_mem::{Pageable, SlotMut};
/// let slot = SlotMut::alone(&Pageable, 8).unwrap();
/// let two = slot.clone();
/// ```
pub struct SlotMut(
    /// Counted from the start, so that sealing moves a pointer; this is the only
    /// count until then.
    StdArc<Mem>,
);

impl SlotMut {
    pub(crate) fn new(mem: Mem) -> Self {
        SlotMut(StdArc::new(mem))
    }

    /// A slot of `bytes` bytes that belongs to no pool: its memory is given
    /// back when it is dropped.
    ///
    /// # Errors
    /// As the allocator's, or if it gives fewer bytes.
    pub fn alone(alloc: &dyn HostAlloc, bytes: usize) -> Result<Self> {
        let block = alloc.alloc(bytes)?;
        if block.len() < bytes { Err(short(bytes, &block)) } else { Ok(Self::of(block, bytes)) }
    }

    /// The first `len` bytes of a block; it has as many.
    fn of(block: Block, len: usize) -> Self {
        // I1: of a segment that is new. I5: as the caller says.
        let segment = Segment { block, slot_bytes: len, charge: None };
        SlotMut::new(Mem::new(Arc::new(segment), 0, len, None))
    }

    /// Bytes asked for.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// No bytes?
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Who has locked its pages.
    pub fn lock(&self) -> Lock {
        self.0.lock()
    }

    /// The bytes. What they hold is unspecified, but they hold something.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the bytes are the block's (I5) and initialised (`Block`),
        // this slot's alone (I1), and borrowed as long as `self` is.
        unsafe { slice::from_raw_parts_mut(self.0.as_ptr().as_ptr(), self.0.len) }
    }

    /// The address of the first byte, for writers that share the slot by rows.
    pub(crate) fn as_ptr(&self) -> NonNull<u8> {
        self.0.as_ptr()
    }

    /// Ends the writing.
    pub fn seal(self) -> Slot {
        Slot(self.0)
    }
}

/// Memory of its own as a slot, outside any pool.
impl From<Block> for SlotMut {
    fn from(block: Block) -> Self {
        let len = block.len();
        Self::of(block, len)
    }
}

impl fmt::Debug for SlotMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotMut").field("len", &self.len()).field("lock", &self.lock()).finish()
    }
}

/// A sealed slot: nobody writes it. Clones share it; with the last one gone
/// its memory goes back to the pool.
///
/// Forgetting one wastes the memory, never more:
///
/// ```
/// # use pinfeed_mem::{Pageable, SlotMut};
/// let slot = SlotMut::alone(&Pageable, 8)?.seal();
/// std::mem::forget(slot.clone());
/// assert_eq!(slot.as_slice(), [0; 8]);
/// # Ok::<(), pinfeed_mem::Error>(())
/// ```
///
/// ```compile_fail,E0596
/// # use pinfeed_mem::{Pageable, SlotMut};
/// let slot = SlotMut::alone(&Pageable, 8).unwrap().seal();
/// slot.as_slice()[0] = 1; // a sealed slot is only read
/// ```
#[derive(Clone)]
pub struct Slot(StdArc<Mem>);

impl Slot {
    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the bytes are the block's (I5) and initialised (`Block`); a
        // sealed slot has no writer: `seal` took the only `SlotMut`, and the
        // slot goes to nobody else before `Mem`'s only owner drops it (I1).
        unsafe { slice::from_raw_parts(self.0.as_ptr().as_ptr(), self.0.len) }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// No bytes?
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Has the CUDA driver page-locked it? A slot without bytes has no page.
    pub fn is_pinned(&self) -> bool {
        self.0.lock().driver
    }

    /// Has the operating system locked it (`mlock`)?
    pub fn is_os_locked(&self) -> bool {
        self.0.lock().os
    }
}

impl AsRef<[u8]> for Slot {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("len", &self.len())
            .field("is_pinned", &self.is_pinned())
            .field("is_os_locked", &self.is_os_locked())
            .finish()
    }
}
