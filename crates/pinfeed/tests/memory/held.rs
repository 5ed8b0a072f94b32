//! Batches that the user keeps, or loses: nothing ever waits for them.

use std::collections::BTreeSet;
use std::mem;

use pinfeed::mem::{locked_bytes, page_size, round_to_pages};
use pinfeed::{Batch, DataLoader, PinMemory, Tensor, Unpinned};

use crate::common::{
    Gate, LIMIT, alone, eventually, ids, leave_behind, may_lock, nothing_locked, samples, within,
    workers_leave,
};
use crate::{
    BATCH, CREWS, SLAB, base_slots, check, crew, epoch, images, images_of, locked, slot_bytes,
    warnings,
};

/// A list of a thousand batches, of which the budget holds a few: the rest is
/// in ordinary memory, said once, and every value is right.
#[test]
fn a_list_of_a_thousand_batches() {
    let _alone = alone();
    let budget = 8 * slot_bytes();
    if !may_lock(budget) {
        return;
    }
    for threads in CREWS {
        for pin_memory in [PinMemory::Off, PinMemory::PageLock] {
            let locks = matches!(pin_memory, PinMemory::PageLock);
            let loader = locked(images(1000 * BATCH), threads)
                .pin_memory(pin_memory)
                .pinned_budget(budget)
                .build()
                .unwrap();
            let loader = within(LIMIT, move || {
                let batches: Vec<Batch> = loader.iter().collect::<Result<_, _>>().unwrap();
                assert_eq!(batches.len(), 1000);
                for (number, batch) in batches.iter().enumerate() {
                    check(batch, number * BATCH);
                }
                assert!(locked_bytes() <= budget as u64);
                let in_lock = batches.iter().filter(|batch| batch.is_os_locked()).count();
                let memory = loader.memory();
                if locks {
                    assert!((6..=8).contains(&in_lock), "{in_lock} of 8 are locked");
                    assert!(memory.charged <= budget);
                    assert!(memory.slab.overflowed >= 990, "{memory:?}");
                    for batch in batches.iter().filter(|batch| !batch.is_os_locked()) {
                        let pinning = batch.pinning();
                        let over = |(_, _, why): &(_, _, Unpinned)| *why == Unpinned::OverBudget;
                        assert!(pinning.rest.iter().any(over), "{pinning}");
                    }
                } else {
                    assert_eq!(in_lock, 0);
                    assert_eq!((memory.slab.in_use, memory.slab.overflowed), (1000, 0));
                }
                let warnings = warnings(&loader);
                assert_eq!(warnings.len(), usize::from(locks), "{warnings:?}");
                if locks {
                    assert!(warnings[0].contains("ordinary memory"), "{warnings:?}");
                }
                drop(batches);
                loader
            });
            let memory = loader.memory();
            assert_eq!((memory.slab.in_use, memory.small.in_use), (0, 0));
            // What was wanted once only is given back.
            for _ in 0..2 {
                assert_eq!(epoch(&loader), 1000 * BATCH);
            }
            drop(loader.iter());
            let base = base_slots(threads, 2);
            assert!(loader.memory().slab.slots <= base.max(8), "{:?}", loader.memory());
            drop(loader);
            nothing_locked();
        }
    }
}

/// Two passes in step, with a budget for the slots of one: neither waits for
/// the other's.
#[test]
fn a_loader_zipped_with_itself() {
    let _alone = alone();
    for threads in CREWS {
        let budget = base_slots(threads, 2) * slot_bytes();
        if !may_lock(budget) {
            return;
        }
        let loader = locked(images(40 * BATCH), threads).pinned_budget(budget).build().unwrap();
        within(LIMIT, move || {
            for _ in 0..3 {
                let mut pairs = 0;
                for (a, b) in loader.iter().zip(&loader) {
                    let (a, b) = (a.unwrap(), b.unwrap());
                    check(&a, pairs * BATCH);
                    check(&b, pairs * BATCH);
                    pairs += 1;
                }
                assert_eq!(pairs, 40);
            }
            // Four in step, and all batches of a fifth are kept.
            let kept: Vec<Batch> = loader.iter().collect::<Result<_, _>>().unwrap();
            let passes = loader.iter().zip(&loader).zip(loader.iter().zip(&loader));
            for (number, ((a, b), (c, d))) in passes.enumerate() {
                [a, b, c, d].into_iter().for_each(|x| check(&x.unwrap(), number * BATCH));
            }
            check(&kept[39], 39 * BATCH);
        });
    }
}

/// A guard that is forgotten wastes its slot, never more: it is not written
/// again, and nobody waits for it.
#[test]
fn guards_are_forgotten() {
    let _alone = alone();
    for threads in CREWS {
        let loader =
            locked(images(20 * BATCH), threads).pin_memory(PinMemory::Off).build().unwrap();
        within(LIMIT, move || {
            let mut seen: Vec<Tensor> = Vec::new();
            for batch in &loader {
                let batch = batch.unwrap();
                let image = batch.tensor("image").unwrap();
                mem::forget(image.clone());
                mem::forget(batch.tensor("label").unwrap());
                seen.push(image);
                mem::forget(batch);
            }
            assert_eq!(loader.memory().slab.in_use, 20);
            for _ in 0..3 {
                assert_eq!(epoch(&loader), 20 * BATCH);
            }
            assert_eq!(loader.memory().slab.in_use, 20, "wasted, not given to others");
            for (number, image) in seen.iter().enumerate() {
                let id = (number * BATCH) as f32;
                assert!(image.get(0).unwrap().as_slice::<f32>().unwrap().iter().all(|&x| x == id));
            }
        });
        workers_leave();
    }
}

/// A forgotten iterator keeps its tickets, and workers of its own; later ones
/// do not miss them.
#[test]
fn iterators_are_forgotten() {
    let _alone = alone();
    for threads in CREWS {
        let loader =
            locked(images(20 * BATCH), threads).pin_memory(PinMemory::Off).build().unwrap();
        within(LIMIT, move || {
            for begun in 0..5 {
                let mut pass = loader.iter();
                (0..begun).for_each(|batch| check(&pass.next().unwrap().unwrap(), batch * BATCH));
                mem::forget(pass);
                assert_eq!(epoch(&loader), 20 * BATCH);
            }
        });
        leave_behind(if threads.1 { threads.0 } else { 5 * threads.0 });
        workers_leave();
    }
}

/// The labels of a thousand batches do not keep their images: the large slots
/// are as few as ever.
#[test]
fn labels_do_not_keep_images() {
    let _alone = alone();
    for threads in CREWS {
        let base = base_slots(threads, 2);
        let page = page_size();
        // Small slots come as many at a time as the base number has.
        let small = (1000 + 2 * base) * page;
        let most = base * round_to_pages(SLAB) + small;
        if !may_lock(most) {
            return;
        }
        let loader = locked(images(1000 * BATCH), threads).build().unwrap();
        within(LIMIT, move || {
            let mut labels = Vec::new();
            for batch in &loader {
                let batch = batch.unwrap();
                labels.push(batch.tensor("label").unwrap());
                let memory = loader.memory();
                assert!(memory.slab.slots <= base, "{memory:?}");
                assert_eq!(memory.slab.grown, 0);
            }
            let memory = loader.memory();
            assert_eq!((memory.slab.in_use, memory.small.in_use), (0, 1000));
            assert!(memory.small.reserved <= small, "{memory:?}");
            assert!(memory.charged <= most);
            assert_eq!(locked_bytes(), memory.charged as u64);
            assert_eq!(warnings(&loader), [""; 0]);
            for (number, labels) in labels.iter().enumerate() {
                assert!(labels.is_os_locked());
                let labels = labels.to_vec::<i64>().unwrap();
                assert!(
                    labels.into_iter().eq((number * BATCH) as i64..((number + 1) * BATCH) as i64)
                );
            }
        });
        nothing_locked();
    }
}

/// A thread that is stuck in a sample of a dropped iterator keeps its slot:
/// another takes its place.
#[test]
fn a_stuck_thread_keeps_a_slot() {
    let _alone = alone();
    for threads in [(1, false), (2, false), (2, true)] {
        let budget = base_slots(threads, 2) * slot_bytes();
        if !may_lock(budget) {
            return;
        }
        let (gate, _opener) = Gate::closed();
        let held = gate.clone();
        let data: crate::Images = Box::new(samples(20 * BATCH, move |index, row, cx| {
            // The layout is known by then: the sample lies in its slot.
            row.named("label").put(index as i64)?;
            let image = row.named("image").tensor::<f32>(&[crate::FLOATS])?;
            if cx.epoch() == 0 && index == 3 * BATCH {
                held.pass();
            }
            image.fill(index as f32);
            Ok(())
        }));
        let loader = locked(data, threads).pinned_budget(budget).build().unwrap();
        let opens = gate.clone();
        within(LIMIT, move || {
            let mut pass = loader.iter();
            (0..2).for_each(|batch| check(&pass.next().unwrap().unwrap(), batch * BATCH));
            gate.wait_for_arrivals(1);
            drop(pass);
            for _ in 0..3 {
                assert_eq!(epoch(&loader), 20 * BATCH);
            }
            eventually("all but the stuck one come back", || loader.memory().slab.in_use == 1);
            assert_eq!(opens.passed(), 0);
            opens.open();
            eventually("it comes back", || loader.memory().slab.in_use == 0);
        });
        workers_leave();
    }
}

/// BO-06: batches of all sizes. What is reserved stays below what is in flight,
/// and one more; on request it is given back.
#[test]
fn bo_06_batches_of_all_sizes() {
    all_sizes(76_800, 30_720, 1);
}

/// Slots below 256 KiB come several at a time, and go together.
#[test]
fn bo_06_small_batches_of_all_sizes() {
    all_sizes(17_000, 6_800, 3);
}

/// Batches of `least` floats and up to `more` on top. The memory is that of the
/// largest for each slot, `factor` times at most.
fn all_sizes(least: usize, more: usize, factor: usize) {
    let _alone = alone();
    let floats = move |index: usize| least + index * 7919 % more;
    let largest = round_to_pages(4 * (least + more));
    for threads in [(0, false), (4, false), (4, true)] {
        let base = base_slots(threads, 2);
        if !may_lock((base + 2) * factor * largest) {
            return;
        }
        nothing_locked();
        let loader = crew(DataLoader::builder(images_of(200, floats)), threads)
            .pin_memory(PinMemory::PageLock)
            .build()
            .unwrap();
        within(LIMIT, move || {
            for _ in 0..2 {
                for (number, batch) in loader.iter().enumerate() {
                    let batch = batch.unwrap();
                    assert!(batch.is_os_locked());
                    assert_eq!(ids(&batch), [number]);
                    assert_eq!(batch.tensor("image").unwrap().shape(), [1, floats(number)]);
                    let memory = loader.memory();
                    assert!(memory.slab.reserved <= (base + 1) * factor * largest, "{memory:?}");
                    if threads.0 == 0 {
                        assert_eq!(memory.slab.asked, 4 * floats(number));
                    }
                }
            }
            let memory = loader.memory();
            assert_eq!(locked_bytes(), memory.charged as u64, "{memory:?}");
            assert_eq!(memory.charged, memory.slab.reserved + memory.small.reserved);
            assert!(memory.charged > 0);
            loader.release_memory();
            assert_eq!(loader.memory().charged, 0);
            assert_eq!(locked_bytes(), 0);
        });
    }
}

/// BO-06: one that is no power of two takes its pages, and none more.
#[test]
fn bo_06_exact_in_size() {
    let _alone = alone();
    for floats in [16_385usize, 100_001, 339_483] {
        if !may_lock(8 * floats) {
            return;
        }
        let loader = DataLoader::builder(images_of(1, move |_| floats))
            .pin_memory(PinMemory::PageLock)
            .build()
            .unwrap();
        let batch = loader.iter().next().unwrap().unwrap();
        assert_eq!(loader.memory().slab.reserved, round_to_pages(4 * floats));
        let both = round_to_pages(4 * floats) + page_size();
        assert_eq!(locked_bytes(), both as u64);
        drop(batch);
    }
}

/// BO-03: what is locked is not copied again, neither is a part of it.
#[test]
fn bo_03_no_second_lock() {
    let _alone = alone();
    if !may_lock(8 * slot_bytes()) {
        return;
    }
    for threads in CREWS {
        let loader = locked(images(100), threads).build().unwrap();
        let mut addresses = BTreeSet::new();
        for batch in &loader {
            let batch = batch.unwrap();
            let held = locked_bytes();
            for tensor in batch.tensors() {
                for view in [tensor.clone(), tensor.get(0).unwrap(), tensor.narrow(1, 2).unwrap()] {
                    let again = view.page_lock().unwrap();
                    assert!(again.is_os_locked());
                    assert_eq!(again.bytes().as_ptr(), view.bytes().as_ptr());
                }
                addresses.insert(tensor.bytes().as_ptr().addr());
            }
            // Workers may be locking slots for batches to come.
            assert!(threads.0 > 0 || locked_bytes() == held);
        }
        assert_eq!(locked_bytes(), loader.memory().charged as u64);
        assert!(addresses.len() <= 2 * base_slots(threads, 2), "{addresses:?}");
        drop(loader);
        nothing_locked();
    }
}
