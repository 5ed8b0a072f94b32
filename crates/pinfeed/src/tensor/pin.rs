//! Page-locked memory: asking for it, and asking whether it is.

use pinfeed_mem::{Bytes, PageLock, SlotMut};

use super::{Storage, Tensor};
use crate::error::{Error, Kind, Result};

impl Tensor {
    /// Has the CUDA driver page-locked the memory? Only such memory is copied
    /// to a device while the program goes on.
    ///
    /// A tensor without elements has no memory, so the answer is false for
    /// every shape with a zero in it.
    pub fn is_pinned(&self) -> bool {
        self.bytes > 0 && matches!(&self.storage, Storage::Slot(slot) if slot.is_pinned())
    }

    /// Has the operating system locked the memory (`mlock`)? It is not paged
    /// out then, but it is not pinned: CUDA treats it as pageable.
    ///
    /// False for every shape with a zero in it, as [`is_pinned`](Tensor::is_pinned).
    pub fn is_os_locked(&self) -> bool {
        self.bytes > 0 && matches!(&self.storage, Storage::Slot(slot) if slot.is_os_locked())
    }

    /// This tensor in memory that the CUDA driver has page-locked.
    ///
    /// What is pinned already, or has no elements, is returned as it is: the
    /// memory is shared, nothing is copied.
    ///
    /// # Errors
    /// This version does not ask the CUDA driver for memory yet, so anything
    /// else is an error. [`page_lock`](Tensor::page_lock) needs no driver.
    pub fn pin_memory(&self) -> Result<Tensor> {
        if self.is_pinned() || self.bytes == 0 {
            return Ok(self.clone());
        }
        Err(Error::new(
            Kind::Memory,
            format!(
                "pin_memory() can not pin {}: this version of pinfeed has no CUDA support",
                Bytes(self.bytes as u64)
            ),
        )
        .with_hint("page_lock() has the operating system lock it instead, without a driver"))
    }

    /// This tensor in memory that the operating system has locked (`mlock`).
    ///
    /// What is locked already, by the system or the CUDA driver, or has no
    /// elements, is returned as it is: the memory is shared, nothing is
    /// copied, nothing more is locked. The lock goes when the last tensor that
    /// shares the memory is dropped.
    ///
    /// # Errors
    /// If the system refuses the lock; the error says how much is locked, the
    /// limit, and how to raise it.
    pub fn page_lock(&self) -> Result<Tensor> {
        if self.is_os_locked() || self.is_pinned() || self.bytes == 0 {
            return Ok(self.clone());
        }
        let mut slot = SlotMut::alone(&PageLock, self.bytes)?;
        slot.as_mut_slice().copy_from_slice(self.bytes());
        Ok(Self::from_slot(slot.seal(), 0, self.dtype, self.shape.clone()))
    }
}
