//! [`Block`]: memory with an owner, the way it was had, and how it is given back.

use std::alloc::{self, Layout};
use std::fmt;
use std::mem;
use std::ptr::NonNull;

use crate::error::{Error, Result};
use crate::fork::Moment;
use crate::mapping::Mapping;

/// Where every block begins: a cache line, and enough for any element.
pub(crate) const ALIGN: usize = 64;
/// The alignment asked of the heap. Any more, and the standard library fills
/// the memory with zeros itself instead of asking for pages that hold them.
const HEAP_ALIGN: usize = 16;

/// Who has locked a block's pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// The operating system (`mlock`): resident, but the kernel may still move
    /// it, and CUDA treats it as pageable.
    pub os: bool,
    /// The CUDA driver: what CUDA calls pinned.
    pub driver: bool,
}

/// Bytes that are initialised, aligned to 64, owned, and do not move.
///
/// Blocks are made by a [`HostAlloc`](crate::HostAlloc). One of your own can
/// hand out [`Block::zeroed`] and [`Block::shared`], or memory of its own by
/// [`Block::from_raw`].
pub struct Block {
    ptr: NonNull<u8>,
    len: usize,
    lock: Lock,
    /// Gives the memory back. Taken in drop.
    owner: Owner,
}

enum Owner {
    /// No bytes.
    Nobody,
    /// The block begins at the first aligned byte from `base` on.
    Heap {
        base: NonNull<u8>,
        layout: Layout,
    },
    Mapping(#[expect(dead_code, reason = "kept to be unmapped by its own drop")] Mapping),
    Stranger {
        free: Option<Box<dyn FnOnce() + Send + Sync>>,
        made: Moment,
    },
}

// SAFETY: a block is the only owner of its bytes (heap and mapping by making,
// a stranger's by the contract of `from_raw`), which any thread may free.
unsafe impl Send for Block {}
// SAFETY: `&Block` neither reads nor writes the bytes. Who does so by `as_ptr`
// says why nobody else does (I1).
unsafe impl Sync for Block {}

impl Block {
    /// Zeroed memory from the heap. A large one costs little until its pages
    /// are written.
    ///
    /// # Errors
    /// If there is no memory of that size.
    pub fn zeroed(bytes: usize) -> Result<Self> {
        if bytes == 0 {
            return Ok(Self::empty());
        }
        let no_memory = || Error::no_memory(bytes, std::io::ErrorKind::OutOfMemory.into());
        let layout = bytes
            .checked_add(ALIGN - HEAP_ALIGN)
            .and_then(|bytes| Layout::from_size_align(bytes, HEAP_ALIGN).ok())
            .ok_or_else(no_memory)?;
        // SAFETY: the layout's size is not zero (checked above).
        let base = unsafe { alloc::alloc_zeroed(layout) };
        let base = NonNull::new(base).ok_or_else(no_memory)?;
        let address = base.addr().get();
        let pad = address.next_multiple_of(ALIGN) - address;
        // SAFETY: `base` is aligned to HEAP_ALIGN, so `pad` is at most what
        // was added to `bytes` above.
        let ptr = unsafe { base.add(pad) };
        Ok(Block { ptr, len: bytes, lock: Lock::default(), owner: Owner::Heap { base, layout } })
    }

    /// A shared anonymous mapping (`MAP_SHARED`), exact to the page, its pages
    /// touched by several threads. A fork shares it instead of copying it.
    ///
    /// # Errors
    /// If there is no memory of that size.
    pub fn shared(bytes: usize) -> Result<Self> {
        Ok(Self::from_mapping(Mapping::new(bytes)?, bytes, Lock::default()))
    }

    /// As [`shared`](Block::shared), locked into memory by the operating
    /// system (`mlock`).
    ///
    /// # Errors
    /// If there is no memory of that size, or the lock is refused: the error
    /// says what is held, the limit and the remedy.
    pub fn locked(bytes: usize) -> Result<Self> {
        if bytes == 0 {
            return Ok(Self::empty());
        }
        let mapping = Mapping::new(bytes)?;
        mapping.lock()?;
        Ok(Self::from_mapping(mapping, bytes, Lock { os: true, driver: false }))
    }

    fn from_mapping(mapping: Mapping, bytes: usize, lock: Lock) -> Self {
        Block { ptr: mapping.as_ptr(), len: bytes, lock, owner: Owner::Mapping(mapping) }
    }

    fn empty() -> Self {
        Block {
            // Dangling, but aligned as every block is.
            ptr: NonNull::without_provenance(const { std::num::NonZero::new(ALIGN).unwrap() }),
            len: 0,
            lock: Lock::default(),
            owner: Owner::Nobody,
        }
    }

    /// Memory of a stranger's; `free` gives it back. In a process forked after
    /// this call the memory is the parent's to give back: `free` is not called
    /// there.
    ///
    /// # Safety
    /// - `ptr` is aligned to 64, and points to `len` initialised bytes of one
    ///   allocation, which may be read and written through it;
    /// - nobody else reads or writes them until `free` is called, or ever, if
    ///   the block is forgotten;
    /// - they do not move, and stay valid until then;
    /// - `free` may be called on any thread;
    /// - what `lock` says of them is so until then.
    pub unsafe fn from_raw(
        ptr: NonNull<u8>,
        len: usize,
        lock: Lock,
        free: impl FnOnce() + Send + Sync + 'static,
    ) -> Self {
        debug_assert!(ptr.as_ptr().addr().is_multiple_of(ALIGN));
        let owner = Owner::Stranger { free: Some(Box::new(free)), made: Moment::now() };
        Block { ptr, len, lock, owner }
    }

    /// Bytes that can be used.
    pub fn len(&self) -> usize {
        self.len
    }

    /// No bytes?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Who has locked its pages.
    pub fn lock(&self) -> Lock {
        self.lock
    }

    /// The first byte. The pointer is the allocation's own, not one made from
    /// `&self`: slots of one block are written through it at the same time.
    pub(crate) fn as_ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Would a forked child see writes made after the fork? A stranger's
    /// memory may be a shared mapping, so it counts as one.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.owner, Owner::Mapping(_) | Owner::Stranger { .. })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match &mut self.owner {
            Owner::Nobody => {}
            Owner::Heap { base, layout } => {
                // SAFETY: `base` came from the global allocator with this very
                // layout (`zeroed`), and a block is dropped once.
                unsafe { alloc::dealloc(base.as_ptr(), *layout) }
            }
            // Unmapped by its own drop.
            Owner::Mapping(_) => {}
            Owner::Stranger { free, made } => match free.take() {
                Some(free) if made.same_process() => free(),
                free => mem::forget(free),
            },
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("len", &self.len).field("lock", &self.lock).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn aligned_and_exact() {
        for bytes in [0, 1, 63, 64, 65, 4096, (1 << 20) + 1] {
            for block in [Block::zeroed(bytes), Block::shared(bytes), Block::locked(bytes)] {
                let Ok(block) = block else { continue };
                assert_eq!(block.len(), bytes);
                assert!(block.as_ptr().addr().get().is_multiple_of(ALIGN));
            }
        }
    }

    #[test]
    fn more_than_there_is() {
        for bytes in [usize::MAX, usize::MAX - ALIGN, isize::MAX as usize] {
            assert_eq!(Block::zeroed(bytes).unwrap_err().bytes(), Some(bytes));
            assert_eq!(Block::shared(bytes).unwrap_err().bytes(), Some(bytes));
            assert_eq!(Block::locked(bytes).unwrap_err().bytes(), Some(bytes));
        }
    }

    #[test]
    fn a_stranger_is_told_once() {
        let freed = Arc::new(AtomicUsize::new(0));
        let lock = Lock { os: false, driver: true };
        let told = Arc::clone(&freed);
        let owner = Block::zeroed(128).unwrap();
        // SAFETY: the bytes are `owner`'s, which `free` keeps and nobody else
        // uses. No page is locked, but nothing here acts upon that.
        let block = unsafe {
            Block::from_raw(owner.as_ptr(), owner.len(), lock, move || {
                told.fetch_add(1, Ordering::Relaxed);
                drop(owner);
            })
        };
        assert_eq!(block.lock(), lock);
        assert_eq!(freed.load(Ordering::Relaxed), 0);
        drop(block);
        assert_eq!(freed.load(Ordering::Relaxed), 1);
    }
}
