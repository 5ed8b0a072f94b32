//! A data loader: worker threads write each sample straight into its place in
//! the batch's memory, which can be page-locked.
//!
//! It is PyTorch's `DataLoader`, with its names, for Rust. The path of a
//! batch, and the folders of this crate in the same order:
//!
//! ```text
//! dataset -> sampler -> ticket -> workers: get + transform, row by row, into the slot
//!         -> order -> batch -> you
//! ```
//!
//! | stage | what it is | where |
//! |---|---|---|
//! | data set | samples by index | [`Dataset`], [`TensorDataset`], [`from_fn`] |
//! | sample | what is written to a row | [`Row`], [`Sample`], [`Spec`] |
//! | transform | a function of a sample | [`Transform`], [`Dataset::map`] |
//! | sampler | which samples, in what order | [`Sampler`] |
//! | collate | samples to a batch | stacked; or your own [`Collate`] |
//! | loader | workers, tickets, order | [`DataLoader`] |
//! | batch | tensors in one slot | [`Batch`], [`Tensor`] |
//! | memory | ordinary, locked, or your own | [`PinMemory`], [`mem::HostAlloc`] |
//!
//! ```
//! use pinfeed::{DataLoader, Tensor};
//!
//! let data = pinfeed::from_fn(1000, |i| ([i as f32; 8], (i % 10) as i64));
//! let loader = DataLoader::builder(data).batch_size(32).shuffle(true).num_workers(2).build()?;
//! for batch in &loader {
//!     let (x, y): (Tensor, Tensor) = batch?.try_into()?;
//!     assert_eq!(x.shape()[1..], [8]);
//!     assert_eq!(y.shape()[0], x.shape()[0]);
//! }
//! # Ok::<(), pinfeed::Error>(())
//! ```
//!
//! # Crate features
//!
//! - `derive` (default): `#[derive(Sample)]` and `#[derive(FromBatch)]`.
//! - `image` (default): image folders and archives of images, JPEG and PNG.
//! - `ndarray` (default): views of tensors as arrays, and back, without a copy.

#![forbid(unsafe_code)]

mod batch;
mod collate;
mod dataset;
mod error;
#[cfg(feature = "image")]
mod format;
mod loader;
mod memory;
mod sample;
mod sampler;
mod tensor;
mod transform;
mod warnings;

pub use batch::{Batch, BatchField, FromField, Pinning};
pub use collate::{BatchMut, Collate};
pub use dataset::{
    ConcatDataset, Context, Dataset, FnDataset, Map, Subset, Synthetic, TensorDataset, Transform,
    from_fn, try_from_fn,
};
pub use error::{BoxError, Error, Result};
#[cfg(feature = "image")]
pub use format::ImageFolder;
pub use half::{bf16, f16};
pub use loader::{Builder, DataLoader, Iter};
pub use memory::{MemoryStats, PinMemory, Unpinned};
#[cfg(feature = "derive")]
pub use pinfeed_derive::{FromBatch, Sample};
pub use sample::{Field, FieldKind, FieldRef, Name, Row, Rows, Sample, SampleBuf, SampleRef, Spec};
pub use sampler::{Generator, Indices, RandomSampler, Sampler, SequentialSampler};
pub use tensor::{DType, Element, Tensor};
pub use transform::{Normalize, ToTensor};

/// Memory, for allocators of your own and for figures: the part of
/// `pinfeed-mem` that is for users.
pub mod mem {
    pub use pinfeed_mem::{
        Block, Bytes, Error, HostAlloc, Lock, PageLock, Pageable, PoolStats, Result,
        available_memory, lock_limit, locked_bytes, page_size, round_to_pages,
    };
}

/// The README's example, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
