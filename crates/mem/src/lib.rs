//! Page-locked host memory for [pinfeed](https://docs.rs/pinfeed): where it
//! comes from, how it is kept, and how threads fill it together.
//!
//! ```text
//!            HostAlloc           Pool              Queue              seal
//! (memory) -----------> Block ---------> SlotMut ---------> rows ------------> Slot
//!                         ^       ^      in a Grid     (claims, written       (read, shared)
//!                         |       |                     by many threads)         |
//!                         |       +---------------- last clone dropped ----------+
//!                         +------ pool dropped, trimmed, or over the budget
//! ```
//!
//! | stage | module |
//! |---|---|
//! | bytes with an owner, and who locked them | [`Block`], [`Lock`] |
//! | where bytes come from | [`HostAlloc`]: [`Pageable`], [`PageLock`] |
//! | how many may be locked | [`Budget`] |
//! | slots kept and handed out again | [`Pool`] |
//! | a slot being written, a slot sealed | [`SlotMut`], [`Slot`] |
//! | columns and rows in slots | [`Plan`], [`Grid`], [`Sealed`] |
//! | batches in order, rows to threads | [`Queue`], [`Lane`], [`Claim`] |
//!
//! The README beside this file states the invariants (I1 to I5) that the
//! `SAFETY` comments cite.

mod block;
mod budget;
mod error;
mod fork;
mod grid;
mod host;
#[cfg(all(test, loom))]
mod loom_tests;
mod mapping;
mod os;
mod pool;
mod queue;
mod slot;
mod sync;
mod ticket;

pub use block::{Block, Lock};
pub use budget::Budget;
pub use error::{Bytes, Error, Result};
pub use fork::Moment;
pub use grid::{Column, Grid, PARTS, Part, Plan, SMALL_BYTES, Sealed};
pub use host::{HostAlloc, PageLock, Pageable};
pub use os::{available_memory, lock_limit, locked_bytes, page_size, round_to_pages};
pub use pool::{Pool, PoolStats};
pub use queue::{Lane, Next, Queue};
pub use slot::{Slot, SlotMut};
pub use ticket::{Claim, Finished, Rescue};
