//! From samples to a batch: where the fields lie, and collate functions of the
//! user's.

mod custom;
mod layout;

pub use custom::{BatchMut, Collate};
pub(crate) use layout::{Layout, mismatch};
