//! [`Block`]: memory with an owner, the way it was had, and how it is given back.

use std::alloc::{self, Layout};
use std::fmt;
use std::ptr::NonNull;

use crate::error::{Error, Result};
use crate::mapping::Mapping;

/// Where every block begins: a cache line, and enough for any element.
pub(crate) const ALIGN: usize = 64;

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
    Heap(Layout),
    Mapping(#[expect(dead_code, reason = "kept to be unmapped by its own drop")] Mapping),
    Stranger(Option<Box<dyn FnOnce() + Send + Sync>>),
}

// SAFETY: a block is the only owner of its bytes (heap and mapping by making,
// a stranger's by the contract of `from_raw`), and `&Block` gives no writes.
unsafe impl Send for Block {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Block {}

impl Block {
    /// Zeroed memory from the heap. Large ones cost nothing until touched.
    ///
    /// # Errors
    /// If there is no memory of that size.
    pub fn zeroed(bytes: usize) -> Result<Self> {
        if bytes == 0 {
            return Ok(Self::empty());
        }
        let no_memory = || Error::map(bytes, std::io::ErrorKind::OutOfMemory.into());
        let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_| no_memory())?;
        // SAFETY: the layout's size is not zero (checked above).
        let ptr = unsafe { alloc::alloc_zeroed(layout) };
        let ptr = NonNull::new(ptr).ok_or_else(no_memory)?;
        Ok(Block { ptr, len: bytes, lock: Lock::default(), owner: Owner::Heap(layout) })
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

    /// Memory of a stranger's; `free` gives it back.
    ///
    /// # Safety
    /// - `ptr` is aligned to 64, and points to `len` initialised bytes;
    /// - nobody else reads or writes them until `free` is called;
    /// - they do not move, and stay valid until then;
    /// - `free` may be called on any thread;
    /// - `lock` is true.
    pub unsafe fn from_raw(
        ptr: NonNull<u8>,
        len: usize,
        lock: Lock,
        free: impl FnOnce() + Send + Sync + 'static,
    ) -> Self {
        debug_assert!(ptr.as_ptr().addr().is_multiple_of(ALIGN));
        Block { ptr, len, lock, owner: Owner::Stranger(Some(Box::new(free))) }
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

    pub(crate) fn as_ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Would a forked child see writes made after the fork? A stranger's
    /// memory may be a shared mapping, so it counts as one.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.owner, Owner::Mapping(_) | Owner::Stranger(_))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match &mut self.owner {
            Owner::Nobody => {}
            Owner::Heap(layout) => {
                // SAFETY: `ptr` came from the global allocator with this very
                // layout (`zeroed`), and a block is dropped once.
                unsafe { alloc::dealloc(self.ptr.as_ptr(), *layout) }
            }
            // Unmapped by its own drop.
            Owner::Mapping(_) => {}
            Owner::Stranger(free) => {
                if let Some(free) = free.take() {
                    free();
                }
            }
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("len", &self.len).field("lock", &self.lock).finish()
    }
}

