//! Where memory comes from: [`HostAlloc`].

use std::fmt;

use crate::block::Block;
use crate::error::Result;

/// A source of host memory for batches.
///
/// The pool asks for blocks and gives them back by dropping them. It may ask
/// with a lock held, so an allocator does not ask the pool in turn.
pub trait HostAlloc: fmt::Debug + Send + Sync {
    /// A block of `bytes` bytes. What it has beyond is not used; a pool takes
    /// a shorter one for an error.
    ///
    /// # Errors
    /// If there is none. An error that [`is_limit`](crate::Error::is_limit)
    /// ([`Error::refused`](crate::Error::refused)) lets the pool take ordinary
    /// memory instead.
    fn alloc(&self, bytes: usize) -> Result<Block>;

    /// Is what it hands out locked, by the system or the driver? Only locked
    /// memory is held to the budget. A pool asks once, when it is made.
    fn locks(&self) -> bool;
}

/// Ordinary memory: always there, not locked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pageable;

impl HostAlloc for Pageable {
    fn alloc(&self, bytes: usize) -> Result<Block> {
        Block::zeroed(bytes)
    }

    fn locks(&self) -> bool {
        false
    }
}

/// Memory that the operating system keeps resident (`mlock`): not paged out,
/// but no pinned memory to CUDA.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageLock;

impl HostAlloc for PageLock {
    fn alloc(&self, bytes: usize) -> Result<Block> {
        Block::locked(bytes)
    }

    fn locks(&self) -> bool {
        true
    }
}
