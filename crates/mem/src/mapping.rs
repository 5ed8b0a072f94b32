//! A shared anonymous mapping.

use std::io;
use std::ptr::{self, NonNull};
use std::slice;
use std::thread;

use rustix::io::Errno;
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
        let no_memory = |source| Error::no_memory(bytes, source);
        let len = bytes
            .max(1)
            .checked_next_multiple_of(os::page_size())
            .ok_or_else(|| no_memory(io::ErrorKind::OutOfMemory.into()))?;
        // SAFETY: no address is asked for, so no mapping that exists changes.
        let ptr = unsafe {
            mm::mmap_anonymous(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )
        }
        .map_err(|e| no_memory(e.into()))?;
        let ptr = NonNull::new(ptr.cast::<u8>())
            .ok_or_else(|| no_memory(io::ErrorKind::OutOfMemory.into()))?;
        let mut mapping = Mapping { ptr, len, made: Moment::now() };
        touch(mapping.pages()).map_err(no_memory)?;
        Ok(mapping)
    }

    pub(crate) fn as_ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    fn pages(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is this long, readable and writable; the kernel
        // filled it with zeros; and `&mut self` in `new`, before the pointer
        // is given out, makes this its only use.
        unsafe { slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }

    /// Locks the pages into memory.
    pub(crate) fn lock(&self) -> Result<()> {
        // SAFETY: the range is this mapping's, and locking changes no byte.
        unsafe { mm::mlock(self.ptr.as_ptr().cast(), self.len) }
            .map_err(|e| Error::refused(self.len, e.into()))
    }
}

/// Makes every page present, by several threads if there are many.
fn touch(pages: &mut [u8]) -> io::Result<()> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let threads = cpus.min(TOUCHERS).min(pages.len().div_ceil(TOUCH_PART)).max(1);
    let mut parts = pages.chunks_mut(os::round_to_pages(pages.len().div_ceil(threads)));
    let own = parts.next();
    let spawned = thread::scope(|scope| {
        let others: Vec<_> = parts
            .map(|part| {
                thread::Builder::new()
                    .name("pinfeed-touch".into())
                    .spawn_scoped(scope, move || populate(part))
            })
            .collect();
        own.map_or(Ok(()), populate)?;
        let mut all = true;
        for other in others {
            match other {
                Ok(thread) => thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("a page toucher panicked")))?,
                Err(_) => all = false,
            }
        }
        io::Result::Ok(all)
    })?;
    // The system starts no more threads: the parts left out are touched here.
    // Pages that are there already cost next to nothing.
    if spawned { Ok(()) } else { populate(pages) }
}

/// Faults in the pages of `part`, which holds zeros.
fn populate(part: &mut [u8]) -> io::Result<()> {
    // SAFETY: the range is `part`'s, whole pages of a mapping, and populating
    // changes no byte, only whether its page is there.
    match unsafe { mm::madvise(part.as_mut_ptr().cast(), part.len(), Advice::LinuxPopulateWrite) } {
        Ok(()) => Ok(()),
        // Before Linux 5.14: the pages come when they are written.
        Err(Errno::INVAL) => {
            for byte in part.iter_mut().step_by(os::page_size()) {
                // SAFETY: it is a reference. Volatile, so that the write of a
                // zero over a zero is made.
                unsafe { ptr::write_volatile(byte, 0) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_there_and_zero() {
        // More than one toucher, and a last part that is shorter.
        let bytes = 2 * TOUCH_PART + 1;
        let mut mapping = Mapping::new(bytes).unwrap();
        let pages = mapping.pages();
        assert_eq!(pages.len(), os::round_to_pages(bytes));
        assert!(pages.iter().all(|&byte| byte == 0));
        // SAFETY: the range is the mapping's; the buffer has a byte a page.
        let resident = unsafe {
            let mut there = vec![0u8; pages.len() / os::page_size()];
            let asked = libc::mincore(pages.as_mut_ptr().cast(), pages.len(), there.as_mut_ptr());
            assert_eq!(asked, 0);
            there
        };
        assert!(resident.iter().all(|page| page & 1 == 1));
    }

    #[test]
    fn more_than_there_is() {
        for bytes in [usize::MAX, usize::MAX - os::page_size(), isize::MAX as usize] {
            let error = Mapping::new(bytes).err().expect("no machine has that much");
            assert_eq!(error.bytes(), Some(bytes));
            assert!(!error.is_limit());
        }
    }
}
