//! Beginning and ending: iterators dropped in every state, threads that are
//! stuck, loaders shared, and nothing left behind.

#[path = "../common/mod.rs"]
mod common;
mod drops;
mod leaks;
mod share;
mod stuck;

use pinfeed::{Builder, Dataset};

/// `num_workers` and `persistent_workers`.
const CREWS: [(usize, bool); 4] = [(0, false), (1, false), (2, false), (2, true)];

fn crew<D: Dataset + 'static>(
    builder: Builder<D>,
    (workers, persistent): (usize, bool),
) -> Builder<D> {
    builder.num_workers(workers).persistent_workers(persistent)
}
