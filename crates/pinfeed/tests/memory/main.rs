//! The memory of batches: how much of it there is, whose it is, and what is
//! said of it. Each test measures the process, so they run one at a time.

mod budget;
#[path = "../common/mod.rs"]
mod common;
mod figures;
mod held;
mod pinning;

use pinfeed::mem::round_to_pages;
use pinfeed::{Batch, BoxError, Builder, DType, DataLoader, Dataset, PinMemory, Result, Row, Spec};

use common::{ids, samples};

/// `num_workers` and `persistent_workers`.
const CREWS: [(usize, bool); 4] = [(0, false), (1, false), (2, false), (2, true)];

fn crew<D: Dataset + 'static>(
    builder: Builder<D>,
    (workers, persistent): (usize, bool),
) -> Builder<D> {
    builder.num_workers(workers).persistent_workers(persistent)
}

/// Slots that one iterator needs: what is read ahead, and the batch in hand.
fn base_slots((workers, _): (usize, bool), prefetch_factor: usize) -> usize {
    if workers == 0 { 1 } else { workers * prefetch_factor + 1 }
}

/// Samples of a batch.
const BATCH: usize = 8;
/// Floats of a sample: 17 KiB, so that a batch of them needs a slot of its own,
/// and has no whole number of pages.
const FLOATS: usize = 4300;

/// Bytes of a batch's large slot, and of its small one.
const SLAB: usize = BATCH * FLOATS * 4;
const SMALL: usize = BATCH * 8;

/// Both, in whole pages.
fn slot_bytes() -> usize {
    round_to_pages(SLAB) + round_to_pages(SMALL)
}

type Images = Box<dyn Dataset>;

/// Images, and labels that are their numbers: all of one size.
fn images(len: usize) -> Images {
    images_of(len, |_| FLOATS)
}

/// The same, saying so beforehand.
fn images_with_spec(len: usize) -> Images {
    let spec = Spec::new().tensor("label", DType::I64, &[]).unwrap();
    let spec = spec.tensor("image", DType::F32, &[FLOATS]).unwrap();
    Box::new(samples(len, |index, row, _| write(index, FLOATS, row)).with_spec(spec))
}

/// Sample i has `floats(i)` floats.
fn images_of(len: usize, floats: impl Fn(usize) -> usize + Send + Sync + 'static) -> Images {
    Box::new(samples(len, move |index, row, _| write(index, floats(index), row)))
}

fn write(index: usize, floats: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
    row.named("label").put(index as i64)?;
    row.named("image").tensor::<f32>(&[floats])?.fill(index as f32);
    Ok(())
}

/// Checks every value of a batch whose first sample is `first`.
#[track_caller]
fn check(batch: &Batch, first: usize) {
    let ids = ids(batch);
    assert!(ids.iter().copied().eq(first..first + batch.len()), "{ids:?} from {first} on");
    let image = batch.tensor("image").unwrap();
    for (row, id) in ids.into_iter().enumerate() {
        let row = image.get(row).unwrap();
        assert!(row.as_slice::<f32>().unwrap().iter().all(|&x| x == id as f32), "image {id}");
    }
}

/// A whole epoch, one batch after the other; checked, and counted.
#[track_caller]
fn epoch<D: Dataset + 'static>(loader: &DataLoader<D>) -> usize {
    let mut next = 0;
    for batch in loader {
        let batch = batch.unwrap();
        check(&batch, next);
        next += batch.len();
    }
    next
}

/// A loader of full batches whose memory the system locks.
fn locked(data: Images, threads: (usize, bool)) -> Builder<Images> {
    crew(DataLoader::builder(data), threads).batch_size(BATCH).pin_memory(PinMemory::PageLock)
}

/// Warnings, but for the one that there are more workers than CPUs.
fn warnings<D: Dataset + 'static>(loader: &DataLoader<D>) -> Vec<String> {
    let mut warnings = loader.warnings();
    warnings.retain(|warning| !warning.starts_with("num_workers is"));
    warnings
}
