//! Nothing grows: threads, files, locked bytes, resident bytes, slots.

use pinfeed::mem::{locked_bytes, page_size, round_to_pages};
use pinfeed::{BoxError, DataLoader, Dataset, PinMemory, Row};

use crate::common::{
    alone, eventually, may_lock, nothing_locked, open_files, resident_bytes, samples,
    worker_threads, workers_leave,
};
use crate::{CREWS, crew};

/// What is allowed for the allocator's and the harness's moods.
const NOISE: usize = 16 << 20;

const BATCH: usize = 8;
/// 128 KiB of a batch are too many for the small slot.
const FLOATS: usize = 4096;

fn write(index: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
    row.tensor::<f32>(&[FLOATS])?.fill(index as f32);
    row.put_text("label");
    Ok(row.put(index as i64)?)
}

#[derive(Debug)]
struct Figures {
    files: usize,
    locked: u64,
    resident: usize,
}

/// After whole epochs, when all else has come to rest.
fn at_rest<D: Dataset + 'static>(
    loader: &DataLoader<D>,
    (workers, persistent): (usize, bool),
) -> Figures {
    for _ in 0..3 {
        assert_eq!(loader.iter().count(), loader.len());
    }
    let stay = if persistent { workers } else { 0 };
    eventually("the workers leave", || worker_threads() == stay);
    let memory = loader.memory();
    assert_eq!((memory.slab.in_use, memory.small.in_use), (0, 0));
    let base = if workers == 0 { 1 } else { 2 * workers + 1 };
    // How many of the base slots were ever needed is a matter of timing; what is
    // locked beside them is not.
    assert!(memory.slab.slots <= base && memory.small.slots <= base, "{memory:?}");
    assert_eq!(locked_bytes(), memory.charged as u64, "{memory:?}");
    // Slots of this size come several at a time, and go together.
    let slots = base * (round_to_pages(BATCH * FLOATS * 4) + page_size());
    assert!(memory.charged <= 4 * slots, "{memory:?}");
    Figures { files: open_files(), locked: locked_bytes(), resident: resident_bytes() }
}

fn flat(passes: usize, use_loader: impl Fn(&DataLoader<Box<dyn Dataset>>)) {
    let _alone = alone();
    for threads in CREWS {
        for pin_memory in [PinMemory::Off, PinMemory::PageLock] {
            let locks = matches!(pin_memory, PinMemory::PageLock);
            if locks && !may_lock(6 << 20) {
                continue;
            }
            let data: Box<dyn Dataset> = Box::new(samples(64, |index, row, _| write(index, row)));
            let builder = DataLoader::builder(data).batch_size(BATCH).pin_memory(pin_memory);
            let loader = crew(builder, threads).build().unwrap();
            // What the first passes leave, every program does.
            (0..passes / 5).for_each(|_| use_loader(&loader));
            let before = at_rest(&loader, threads);
            assert_eq!(before.locked > 0, locks);
            (0..passes).for_each(|_| use_loader(&loader));
            let after = at_rest(&loader, threads);
            let what = format!("{threads:?}: before {before:?}, after {after:?}");
            assert_eq!(after.files, before.files, "{what}");
            assert_eq!(after.locked > 0, locks, "{what}");
            assert!(after.resident < before.resident + NOISE, "{what}");
            drop(loader);
            workers_leave();
            nothing_locked();
        }
    }
}

#[test]
fn a_thousand_iterators_dropped_after_a_batch() {
    flat(1000, |loader| drop(loader.iter().next().unwrap().unwrap()));
}

#[test]
fn fifty_epochs() {
    flat(50, |loader| {
        for batch in loader {
            let batch = batch.unwrap();
            assert_eq!(batch.len(), BATCH);
            // A tensor of it lives a little longer than the batch.
            let image = batch.tensor_at(0).unwrap();
            drop(batch);
            assert_eq!(image.shape(), [BATCH, FLOATS]);
        }
    });
}

/// Errors and panics cost nothing either.
#[test]
fn a_hundred_passes_with_errors() {
    let _alone = alone();
    for threads in CREWS {
        let data = samples(64, |index, row, _| {
            write(index, row)?;
            if index % 9 == 5 { Err("bad".into()) } else { Ok(()) }
        });
        let builder = DataLoader::builder(data).batch_size(BATCH).pin_memory(PinMemory::PageLock);
        let loader = crew(builder, threads).build().unwrap();
        let turns = |pass: usize| {
            let errors = loader.iter().filter(Result::is_err).count();
            assert_eq!(errors, 7, "pass {pass}");
        };
        (0..20).for_each(turns);
        let before = at_rest(&loader, threads);
        (0..100).for_each(turns);
        let after = at_rest(&loader, threads);
        assert_eq!(after.files, before.files);
        assert_eq!(after.locked, before.locked, "{threads:?}");
        assert!(after.resident < before.resident + NOISE, "{before:?} {after:?}");
    }
}

/// Loaders made and dropped: each takes its threads and its memory with it.
#[test]
fn two_hundred_loaders() {
    let _alone = alone();
    for threads in CREWS {
        let make = || {
            let data = samples(64, |index, row, _| write(index, row));
            let builder =
                DataLoader::builder(data).batch_size(BATCH).pin_memory(PinMemory::PageLock);
            let loader = crew(builder, threads).build().unwrap();
            drop(loader.iter().nth(1).unwrap().unwrap());
        };
        let files = open_files();
        (0..50).for_each(|_| make());
        let resident = resident_bytes();
        (0..200).for_each(|_| make());
        workers_leave();
        nothing_locked();
        assert_eq!(open_files(), files);
        assert!(resident_bytes() < resident + NOISE);
    }
}
