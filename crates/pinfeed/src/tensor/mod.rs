//! Tensors in host memory: a dtype, a shape, and bytes that are shared.

mod dtype;

pub use dtype::{DType, Element};
