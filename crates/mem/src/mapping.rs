//! A shared anonymous mapping.

use std::io;
use std::ptr::NonNull;
use std::thread;

use rustix::mm::{self, Advice, MapFlags, ProtFlags};

use crate::error::{Error, Result};
use crate::fork::Moment;
use crate::os;

/// More threads than this do not fault pages in faster: the kernel's own locks
/// are the limit (measured: 136 ms with 1, 49 ms with 8, for 256 MiB).
const TOUCHERS: usize = 8;
/// Pages are touched in parts of at least this many bytes a thread.
const TOUCH_PART: usize = 4 << 20;

/// Pages mapped `MAP_SHARED | MAP_ANONYMOUS`: exact in size, touched, and
/// unmapped when dropped, except in a forked child, which must leave the
/// parent's pages (and any driver's registration of them) alone.
pub(crate) struct Mapping {
    ptr: NonNull<u8>,
    /// Whole pages.
    len: usize,
    made: Moment,
}

impl Mapping {
    /// Maps `bytes`, rounded up to pages, and touches every page. At least one
    /// page.
    pub(crate) fn new(bytes: usize) -> Result<Self> {
        let len = os::round_to_pages(bytes.max(1));
        // SAFETY: no address is asked for, so no mapping that exists changes.
        let ptr = unsafe {
            mm::mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )
        }
        .map_err(|e| Error::map(bytes, e.into()))?;
        let ptr = NonNull::new(ptr.cast::<u8>())
            .ok_or_else(|| Error::map(bytes, io::ErrorKind::OutOfMemory.into()))?;
        let mapping = Mapping { ptr, len, made: Moment::now() };
        mapping.touch(bytes)?;
        Ok(mapping)
    }

    pub(crate) fn as_ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Makes every page present, by several threads if there are many.
    fn touch(&self, bytes: usize) -> Result<()> {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let threads = cpus.min(TOUCHERS).min(self.len.div_ceil(TOUCH_PART)).max(1);
        let part = os::round_to_pages(self.len.div_ceil(threads));
        let touch = |start: usize| {
            let len = part.min(self.len - start);
            populate(self.ptr, start, len)
        };
        let starts = (0..self.len).step_by(part);
        if threads == 1 {
            return starts.into_iter().try_for_each(touch).map_err(|e| Error::map(bytes, e));
        }
        struct Shared<F>(F);
        // SAFETY: the closure is shared, not its pointer's bytes: each call
        // touches a part of its own, by the kernel.
        unsafe impl<F> Sync for Shared<F> {}
        let touch = &Shared(touch);
        thread::scope(|scope| {
            let parts: Vec<_> = starts
                .map(|start| {
                    scope.spawn(move || {
                        let touch = touch;
                        (touch.0)(start)
                    })
                })
                .collect();
            parts.into_iter().try_for_each(|part| {
                part.join().unwrap_or_else(|_| Err(io::Error::other("a page toucher panicked")))
            })
        })
        .map_err(|e| Error::map(bytes, e))
    }

    /// Locks the pages into memory.
    pub(crate) fn lock(&self) -> Result<()> {
        // SAFETY: the range is this mapping's.
        unsafe { mm::mlock(self.ptr.as_ptr().cast(), self.len) }.map_err(|e| {
            Error::lock(self.len, os::locked_bytes(), os::lock_limit(), e.into())
        })
    }
}

/// Faults in the pages of `start..start + len` of a mapping at `base`.
fn populate(base: NonNull<u8>, start: usize, len: usize) -> io::Result<()> {
    // SAFETY: the range is within the mapping (the caller's parts tile it).
    let part = unsafe { base.as_ptr().add(start) };
    // SAFETY: populating changes no byte, only whether the page is there.
    match unsafe { mm::madvise(part.cast(), len, Advice::LinuxPopulateWrite) } {
        Ok(()) => Ok(()),
        // Before Linux 5.14: the pages come when they are written.
        Err(rustix::io::Errno::INVAL) => {
            for offset in (0..len).step_by(os::page_size()) {
                // SAFETY: within the range above.
                let byte = unsafe { part.add(offset) };
                // SAFETY: nobody else has the new mapping; it holds zeros.
                unsafe { byte.write_volatile(0) };
            }
            Ok(())
        }
        Err(e) => Err(e.into()),
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !self.made.same_process() {
            return;
        }
        // SAFETY: the range is ours, and nobody uses it any more. Unmapping
        // unlocks it too. It can only fail for a wrong range.
        let unmapped = unsafe { mm::munmap(self.ptr.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok());
    }
}
