//! The budget: what does not fit gets ordinary memory, and a word; base slots
//! that do not fit are fewer, or refused.

use std::thread;
use std::time::Duration;

use pinfeed::mem::locked_bytes;
use pinfeed::{DataLoader, PinMemory, Unpinned};

use crate::common::{LIMIT, alone, may_lock, nothing_locked, within};
use crate::{
    BATCH, CREWS, base_slots, check, crew, epoch, images, images_of, images_with_spec, locked,
    slot_bytes, warnings,
};

/// Every batch is larger than the budget: ordinary memory, said once.
#[test]
fn batches_larger_than_the_budget() {
    let _alone = alone();
    for threads in CREWS {
        let budget = slot_bytes() / 2;
        if !may_lock(budget) {
            return;
        }
        let loader = locked(images(20 * BATCH), threads).pinned_budget(budget).build().unwrap();
        within(LIMIT, move || {
            for _ in 0..2 {
                for (number, batch) in loader.iter().enumerate() {
                    let batch = batch.unwrap();
                    check(&batch, number * BATCH);
                    assert!(!batch.is_os_locked() && !batch.is_pinned());
                    let image = batch.tensor("image").unwrap();
                    assert!(!image.is_os_locked());
                    let pinning = batch.pinning();
                    let image = ("image".to_owned(), image.bytes().len(), Unpinned::OverBudget);
                    assert!(pinning.rest.contains(&image), "{pinning}");
                    assert!(pinning.to_string().contains("budget"), "{pinning}");
                    assert!(locked_bytes() <= budget as u64);
                }
            }
            let warnings = warnings(&loader);
            assert_eq!(warnings.len(), 1, "said once: {warnings:#?}");
            let figures = [budget.to_string(), "ordinary memory".to_owned()];
            assert!(figures.iter().all(|part| warnings[0].contains(part)), "{warnings:?}");
            assert!(loader.memory().slab.overflowed >= 40);
        });
        nothing_locked();
    }
}

/// One batch is: it alone is in ordinary memory, and nothing changes for the
/// others.
#[test]
fn one_batch_larger_than_the_budget() {
    let _alone = alone();
    for threads in CREWS {
        let small = crate::FLOATS;
        let budget = (base_slots(threads, 2) + 2) * slot_bytes();
        if !may_lock(budget) {
            return;
        }
        let large = budget / (4 * BATCH) + 1;
        let data =
            images_of(20 * BATCH, move |index| if index / BATCH == 11 { large } else { small });
        let loader = locked(data, threads).pinned_budget(budget).build().unwrap();
        within(LIMIT, move || {
            for _ in 0..2 {
                for (number, batch) in loader.iter().enumerate() {
                    let batch = batch.unwrap();
                    check(&batch, number * BATCH);
                    assert_eq!(batch.is_os_locked(), number != 11, "batch {number}");
                }
            }
            let warnings = warnings(&loader);
            assert_eq!(warnings.len(), 1, "said once: {warnings:#?}");
            assert!(warnings[0].contains("ordinary memory"), "{warnings:?}");
            assert_eq!(loader.prefetch_factor(), 2, "the read-ahead is not to blame");
        });
        nothing_locked();
    }
}

/// In whatever order sizes come, what fits the budget is locked: free slots of
/// the wrong size make room.
#[test]
fn sizes_in_any_order_are_locked() {
    let _alone = alone();
    let unit = 25_000;
    let budget = 4 * unit * 12;
    if !may_lock(budget) {
        return;
    }
    // Tenths of the budget, roughly.
    for sizes in [[1, 10], [10, 1], [3, 7], [9, 8], [10, 10]] {
        let data = images_of(40, move |index| unit * sizes[index % 2]);
        let loader = DataLoader::builder(data)
            .pin_memory(PinMemory::PageLock)
            .pinned_budget(budget)
            .build()
            .unwrap();
        for (number, batch) in loader.iter().enumerate() {
            let batch = batch.unwrap();
            assert!(batch.is_os_locked(), "{sizes:?}: batch {number}: {}", batch.pinning());
        }
        assert_eq!(loader.memory().slab.overflowed, 0);
        assert_eq!(warnings(&loader), [""; 0]);
    }
}

/// The layout is known beforehand: `build` reads less ahead, and says so, as
/// far as that helps; else it says what is missing.
#[test]
fn base_slots_that_do_not_fit() {
    let _alone = alone();
    if !may_lock(9 * slot_bytes()) {
        return;
    }
    let build = |slots: usize, more: usize| {
        crew(DataLoader::builder(images_with_spec(30 * BATCH)), (2, false))
            .batch_size(BATCH)
            .prefetch_factor(4)
            .pin_memory(PinMemory::PageLock)
            .pinned_budget(slots * slot_bytes() + more)
            .build()
    };
    // 2 workers, 4 ahead each: 9 slots with the one in hand.
    for (slots, more, prefetch) in [(9, 0, 4), (8, 0, 3), (7, 4096, 3), (5, 0, 2), (3, 0, 1)] {
        let loader = build(slots, more).unwrap();
        assert_eq!(loader.prefetch_factor(), prefetch);
        let warned = warnings(&loader);
        assert_eq!(warned.len(), usize::from(prefetch < 4), "{warned:?}");
        if let [warning] = &warned[..] {
            for part in ["prefetch_factor", "from 4", &format!("to {prefetch}"), "pinned_budget"] {
                assert!(warning.contains(part), "{warning}");
            }
        }
        within(LIMIT, move || {
            for _ in 0..2 {
                for (number, batch) in loader.iter().enumerate() {
                    let batch = batch.unwrap();
                    check(&batch, number * BATCH);
                    assert!(batch.is_os_locked(), "all of them fit");
                }
            }
            assert_eq!(loader.memory().slab.overflowed, 0);
            assert_eq!(warnings(&loader), warned, "nothing more to say");
        });
    }
    nothing_locked();
    let budget = 2 * slot_bytes();
    let error = build(2, 0).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    let text = error.to_string();
    for figure in ["3 slots", &slot_bytes().to_string(), &budget.to_string(), "pinned_budget"] {
        assert!(text.contains(figure), "{figure} in: {text}");
    }
    assert_eq!(locked_bytes(), 0);
}

/// Without workers there is nothing to lower.
#[test]
fn one_slot_that_does_not_fit() {
    let _alone = alone();
    let build = |budget: usize| {
        DataLoader::builder(images_with_spec(30 * BATCH))
            .batch_size(BATCH)
            .pin_memory(PinMemory::PageLock)
            .pinned_budget(budget)
            .build()
    };
    let error = build(slot_bytes() - 1).unwrap_err();
    assert!(error.is_out_of_memory() && error.to_string().contains("1 slots"), "{error}");
    if may_lock(slot_bytes()) {
        let loader = build(slot_bytes()).unwrap();
        assert_eq!(epoch(&loader), 30 * BATCH);
        assert!(loader.warnings().is_empty());
    }
}

/// The layout is learned from the first batch: what does not fit is lowered or
/// warned of then, and nothing is refused any more.
#[test]
fn base_slots_that_turn_out_not_to_fit() {
    let _alone = alone();
    if !may_lock(9 * slot_bytes()) {
        return;
    }
    for (slots, prefetch) in [(9, 4), (5, 2), (3, 1)] {
        let loader = crew(DataLoader::builder(images(30 * BATCH)), (2, false))
            .batch_size(BATCH)
            .prefetch_factor(4)
            .pin_memory(PinMemory::PageLock)
            .pinned_budget(slots * slot_bytes())
            .build()
            .unwrap();
        within(LIMIT, move || {
            assert_eq!(epoch(&loader), 30 * BATCH);
            assert_eq!(loader.prefetch_factor(), prefetch);
            let warned = warnings(&loader);
            assert!(warned.iter().filter(|w| w.contains("prefetch_factor lowered")).count() <= 1);
            assert_eq!(warned.is_empty(), prefetch == 4, "{warned:?}");
            // From then on all is in its place, also if all of it is in use.
            for (number, batch) in loader.iter().enumerate() {
                let batch = batch.unwrap();
                check(&batch, number * BATCH);
                thread::sleep(Duration::from_millis(1));
                assert!(batch.is_os_locked(), "batch {number}: {:?}", loader.memory());
            }
        });
    }
}

/// The budget is bounded by what the system lets this process lock.
#[test]
fn the_systems_limit_is_a_budget_too() {
    let _alone = alone();
    let loader = locked(images(8), (0, false)).pinned_budget(usize::MAX).build().unwrap();
    let budget = loader.memory().budget;
    match pinfeed::mem::lock_limit() {
        Some(limit) => assert!(budget as u64 <= limit, "{budget} of {limit}"),
        None => assert_eq!(budget, usize::MAX, "this process may lock what it likes"),
    }
    // Left alone, no more than a quarter of what there is.
    let loader = locked(images(8), (0, false)).build().unwrap();
    assert!(loader.memory().budget as u64 <= pinfeed::mem::available_memory() / 2);
}
