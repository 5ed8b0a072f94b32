//! What can go wrong with memory.

use std::fmt;
use std::io;

use crate::budget::Source;

use crate::os;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What to do about a limit of the system's.
pub(crate) const RAISE_RLIMIT: &str = "what RLIMIT_MEMLOCK leaves; raise it (`ulimit -l unlimited`, \
     LimitMEMLOCK= of systemd, `--ulimit memlock=-1` of docker)";

/// Memory could not be had, or could not be locked.
#[derive(Debug)]
pub struct Error(Box<Kind>);

#[derive(Debug)]
enum Kind {
    /// The system has no memory of this size to map.
    Map { bytes: usize, source: io::Error },
    /// The system refused the lock.
    Lock { bytes: usize, held: u64, limit: Option<u64>, source: io::Error },
    /// The base number of slots does not fit the budget.
    Budget { slots: usize, slot_bytes: usize, budget: usize, source: Source },
    /// Used in a process forked after it was made.
    Fork { what: &'static str },
}

impl Error {
    /// There is no memory of this size, locked or not: for an allocator of
    /// your own.
    pub fn no_memory(bytes: usize, source: io::Error) -> Self {
        Error(Box::new(Kind::Map { bytes, source }))
    }

    /// The lock of so many bytes was refused ([`is_limit`](Error::is_limit)):
    /// for an allocator of your own. What the process holds, and its limit,
    /// are asked of the system here.
    pub fn refused(bytes: usize, source: io::Error) -> Self {
        let (held, limit) = (os::locked_bytes(), os::lock_limit());
        Error(Box::new(Kind::Lock { bytes, held, limit, source }))
    }

    pub(crate) fn budget(slots: usize, slot_bytes: usize, budget: usize, source: Source) -> Self {
        Error(Box::new(Kind::Budget { slots, slot_bytes, budget, source }))
    }

    pub(crate) fn fork(what: &'static str) -> Self {
        Error(Box::new(Kind::Fork { what }))
    }

    /// The lock was refused, by the system's limit or the budget: ordinary
    /// memory of that size may still be had.
    pub fn is_limit(&self) -> bool {
        matches!(*self.0, Kind::Lock { .. } | Kind::Budget { .. })
    }

    /// Used in a process forked after it was made.
    pub fn is_fork(&self) -> bool {
        matches!(*self.0, Kind::Fork { .. })
    }

    /// The bytes asked for.
    pub fn bytes(&self) -> Option<usize> {
        match *self.0 {
            Kind::Map { bytes, .. } | Kind::Lock { bytes, .. } => Some(bytes),
            Kind::Budget { slots, slot_bytes, .. } => Some(slots.saturating_mul(slot_bytes)),
            Kind::Fork { .. } => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Map { bytes, source } => write!(
                f,
                "{} of memory could not be had ({source}); try a smaller batch_size, \
                 prefetch_factor or num_workers",
                Bytes(*bytes as u64)
            ),
            Kind::Lock { bytes, held, limit, source } => {
                write!(
                    f,
                    "{} could not be locked into memory ({source}): this process holds {} locked, ",
                    Bytes(*bytes as u64),
                    Bytes(*held)
                )?;
                match limit {
                    Some(limit) => write!(f, "its limit (RLIMIT_MEMLOCK) is {}", Bytes(*limit))?,
                    None => f.write_str("with no limit of its own")?,
                }
                write!(
                    f,
                    "; {RAISE_RLIMIT}, or take a smaller batch_size, prefetch_factor or num_workers"
                )
            }
            Kind::Budget { slots, slot_bytes, budget, source } => write!(
                f,
                "{slots} slots of {} do not fit the budget for page-locked memory of {} ({}), or \
                 take a smaller batch_size or num_workers",
                Bytes(*slot_bytes as u64),
                Bytes(*budget as u64),
                source.remedy()
            ),
            Kind::Fork { what } => write!(
                f,
                "this {what} was made before the process was forked, and its threads and \
                 page-locked memory belong to the parent; make a new one after fork()"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.0 {
            Kind::Map { source, .. } | Kind::Lock { source, .. } => Some(source),
            Kind::Budget { .. } | Kind::Fork { .. } => None,
        }
    }
}

/// A number of bytes as people read it: `12.0 MiB (12582912 bytes)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match UNITS.iter().find(|(_, unit)| self.0 >= *unit) {
            Some((name, unit)) => {
                write!(f, "{:.1} {name} ({} bytes)", self.0 as f64 / *unit as f64, self.0)
            }
            None => write!(f, "{} bytes", self.0),
        }
    }
}
