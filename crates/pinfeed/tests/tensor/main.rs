//! Tensors: making, reading, sharing, locking, showing them, and `ndarray`.

#[cfg(feature = "ndarray")]
mod array;
mod dataset;
mod dtypes;
mod lock;
mod show;
mod views;

/// Shapes without elements (BO-02: some of them once could not be pinned).
const EMPTY: [&[usize]; 5] = [&[0], &[0, 5], &[50, 0], &[2, 0], &[3, 0, 4]];

/// Fails to compile if tensors, data sets or errors could not go to workers.
const _: () = {
    const fn shared<T: Send + Sync + Clone>() {}
    const fn sent<T: Send + Sync>() {}
    shared::<pinfeed::Tensor>();
    shared::<pinfeed::TensorDataset>();
    shared::<pinfeed::DType>();
    sent::<pinfeed::Error>();
};
