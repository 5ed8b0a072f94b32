//! pinfeed
#![forbid(unsafe_code)]

mod dataset;
mod error;
mod sample;
mod tensor;

pub use dataset::{
    ConcatDataset, Context, Dataset, FnDataset, Map, Subset, TensorDataset, Transform, from_fn,
    try_from_fn,
};
pub use error::{BoxError, Error, Result};
pub use sample::{Field, FieldKind, FieldRef, Name, Row, Rows, Sample, SampleBuf, SampleRef, Spec};
pub use tensor::{DType, Element, Tensor};
