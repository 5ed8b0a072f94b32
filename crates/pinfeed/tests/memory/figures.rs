//! What the loader says of its memory is what the kernel says, and it stays
//! what it is.

use std::collections::BTreeSet;

use pinfeed::mem::{locked_bytes, round_to_pages};
use pinfeed::{DataLoader, PinMemory};

use crate::common::{LIMIT, alone, may_lock, nothing_locked, samples, within};
use crate::{
    BATCH, CREWS, SLAB, SMALL, base_slots, check, crew, epoch, images, images_with_spec, locked,
    slot_bytes,
};

/// Locked bytes are so many slots of so many pages.
#[test]
fn locked_bytes_are_slots_in_whole_pages() {
    let _alone = alone();
    for threads in CREWS {
        for prefetch in [1, 2, 3] {
            let base = base_slots(threads, prefetch);
            if !may_lock(base * slot_bytes()) {
                return;
            }
            for data in [images(30 * BATCH), images_with_spec(30 * BATCH)] {
                let mut builder = locked(data, threads);
                if threads.0 > 0 {
                    builder = builder.prefetch_factor(prefetch);
                }
                nothing_locked();
                let loader = builder.build().unwrap();
                assert_eq!(locked_bytes(), 0, "pinned when first needed");
                for _ in 0..3 {
                    assert_eq!(epoch(&loader), 30 * BATCH);
                    let memory = loader.memory();
                    let slab = memory.slab.slots * round_to_pages(SLAB);
                    let small = memory.small.slots * round_to_pages(SMALL);
                    assert_eq!((memory.slab.reserved, memory.small.reserved), (slab, small));
                    assert_eq!(memory.charged, slab + small);
                    assert_eq!(locked_bytes(), (slab + small) as u64, "{memory:?}");
                    assert!((1..=base).contains(&memory.slab.slots), "{memory:?}");
                    assert!((1..=base).contains(&memory.small.slots), "{memory:?}");
                    assert!(memory.slab.locks && memory.small.locks);
                }
                drop(loader);
                nothing_locked();
            }
        }
    }
}

/// After the first epochs no memory is had for a batch: the same slots come
/// back, also where the last batch is short.
#[test]
fn nothing_is_allocated_in_steady_state() {
    let _alone = alone();
    for threads in CREWS {
        for pin_memory in [PinMemory::Off, PinMemory::On, PinMemory::PageLock] {
            for len in [24 * BATCH, 25 * BATCH - 1] {
                let base = base_slots(threads, 2);
                if !may_lock(base * slot_bytes()) {
                    return;
                }
                let loader =
                    locked(images(len), threads).pin_memory(pin_memory.clone()).build().unwrap();
                within(LIMIT, move || {
                    for _ in 0..4 {
                        assert_eq!(epoch(&loader), len);
                    }
                    let before = loader.memory();
                    let mut addresses = BTreeSet::new();
                    for _ in 0..12 {
                        let mut next = 0;
                        for batch in &loader {
                            let batch = batch.unwrap();
                            check(&batch, next);
                            next += batch.len();
                            let image = batch.tensor("image").unwrap();
                            addresses.insert(image.bytes().as_ptr().addr());
                        }
                    }
                    let after = loader.memory();
                    // A slot that was made for a short batch makes room, once,
                    // for one that is longer.
                    let most = if len.is_multiple_of(BATCH) { base } else { 2 * base };
                    assert!(
                        addresses.len() <= most,
                        "{} addresses for {threads:?}, {len} samples: {before:?} {after:?}",
                        addresses.len()
                    );
                    assert!(after.slab.slots <= base && after.small.slots <= base, "{after:?}");
                    for (before, after) in [(before.slab, after.slab), (before.small, after.small)]
                    {
                        assert_eq!((before.grown, after.grown), (0, 0));
                        assert_eq!(after.overflowed, 0);
                        assert_eq!(after.in_use, 0);
                    }
                });
            }
        }
    }
}

/// What is free is given back on request, and had again when it is needed;
/// what the user holds stays.
#[test]
fn release_gives_back() {
    let _alone = alone();
    for threads in CREWS {
        if !may_lock(12 * slot_bytes()) {
            return;
        }
        nothing_locked();
        let loader = locked(images(20 * BATCH), threads).build().unwrap();
        for _ in 0..3 {
            // A whole pass: no worker is still at it after.
            let mut pass = loader.iter();
            let held = pass.next().unwrap().unwrap();
            assert_eq!(pass.count(), 19);
            loader.release_memory();
            let memory = loader.memory();
            assert_eq!((memory.slab.slots, memory.slab.in_use), (1, 1));
            assert_eq!(locked_bytes(), memory.charged as u64);
            check(&held, 0);
            drop(held);
            loader.release_memory();
            let memory = loader.memory();
            assert_eq!((memory.slab.slots, memory.small.slots, memory.charged), (0, 0, 0));
            assert_eq!(locked_bytes(), 0);
        }
    }
}

/// Many batches held once do not make the loader large for ever.
#[test]
fn what_was_held_once_is_given_back() {
    let _alone = alone();
    for threads in CREWS {
        let loader =
            locked(images(40 * BATCH), threads).pin_memory(PinMemory::Off).build().unwrap();
        let kept: Vec<_> = loader.iter().collect();
        assert!(loader.memory().slab.slots >= 40);
        drop(kept);
        for _ in 0..3 {
            assert_eq!(epoch(&loader), 40 * BATCH);
        }
        let base = base_slots(threads, 2);
        assert!(loader.memory().slab.slots <= base, "{:?}", loader.memory());
    }
}

/// What is read ahead, and no more, is there: not what a setting would allow
/// if there were more batches.
#[test]
fn memory_for_the_batches_there_are() {
    let _alone = alone();
    for prefetch in [1000, 100_000, usize::MAX] {
        let data = samples(10, |index, row, _| Ok(row.put(index as i64)?));
        let loader = DataLoader::builder(data).num_workers(1).prefetch_factor(prefetch).build();
        let loader = match loader {
            Ok(loader) => loader,
            Err(error) => {
                assert!(error.is_config() && prefetch > 1000, "{error}");
                continue;
            }
        };
        within(LIMIT, move || {
            assert_eq!(loader.iter().count(), 10);
            let reserved = loader.memory().small.reserved;
            assert!(reserved <= 8 << 20, "{reserved} bytes for 10 batches of 8, {prefetch} ahead");
        });
    }
}

/// Memory that is not locked is counted too, and no budget holds it.
#[test]
fn ordinary_memory_has_no_budget() {
    let _alone = alone();
    let loader = crew(DataLoader::builder(images(40 * BATCH)), (2, false))
        .batch_size(BATCH)
        .pinned_budget(1)
        .build()
        .unwrap();
    assert_eq!(epoch(&loader), 40 * BATCH);
    let memory = loader.memory();
    assert!(memory.slab.slots > 0 && !memory.slab.locks);
    assert_eq!((memory.charged, memory.slab.overflowed, memory.budget), (0, 0, 1));
    assert_eq!(locked_bytes(), 0);
    assert!(loader.warnings().is_empty(), "{:?}", loader.warnings());
}
