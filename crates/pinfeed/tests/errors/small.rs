//! Batches that take less time to make than to hand over: however they travel,
//! each has its own turn, its own error and its own number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinfeed::mem::{Block, HostAlloc};
use pinfeed::{Batch, BoxError, Builder, DataLoader, Dataset, Error, PinMemory, Result, Row};

use crate::common::{Gate, LIMIT, check_rich, ids, samples, within, write_rich};
use crate::sampler::Sampled;

/// Enough for the loader to find out that batches are small.
const LEN: usize = 6000;

/// Two passes, for several numbers of workers: what comes at each turn goes to
/// `check`, with the number of the batch and its samples.
#[track_caller]
fn each_turn<D: Dataset + 'static>(
    builder: impl Fn() -> Builder<D>,
    check: impl Fn(u64, &[usize], Result<Batch>) + Clone + Send + 'static,
) {
    for (workers, persistent) in [(0, false), (1, false), (2, true), (4, false)] {
        for batch_size in [1, 3] {
            let loader = builder()
                .batch_size(batch_size)
                .num_workers(workers)
                .persistent_workers(persistent)
                .build()
                .unwrap();
            let check = check.clone();
            within(LIMIT, move || {
                let all: Vec<usize> = (0..LEN).collect();
                // The second pass is broken off in the middle.
                for batches in [usize::MAX, LEN / batch_size / 2, usize::MAX] {
                    let mut pass = loader.iter();
                    for (number, samples) in all.chunks(batch_size).enumerate().take(batches) {
                        let left = LEN / batch_size - number;
                        assert_eq!(pass.size_hint(), (left, Some(left)));
                        let turn = pass.next().expect("as many turns as the loader said");
                        if let Ok(batch) = &turn {
                            assert_eq!(
                                (batch.number(), batch.len()),
                                (number as u64, samples.len())
                            );
                        }
                        if let Err(error) = &turn {
                            assert_eq!(error.batch(), Some(number as u64), "{error}");
                        }
                        check(number as u64, samples, turn);
                    }
                    if batches == usize::MAX {
                        assert!(pass.next().is_none());
                    }
                }
                let memory = loader.memory();
                assert_eq!((memory.slab.overflowed, memory.small.overflowed), (0, 0));
            });
        }
    }
}

/// The samples of a batch, or the error of the first of them that is bad.
fn good_or(bad: fn(usize) -> bool) -> impl Fn(u64, &[usize], Result<Batch>) + Clone {
    move |_, samples, turn| match samples.iter().copied().find(|&index| bad(index)) {
        None => assert_eq!(ids(&turn.unwrap()), samples),
        Some(first) => {
            let error = turn.expect_err("one of the samples is bad");
            assert_eq!(error.index(), Some(first), "{error}");
        }
    }
}

fn is_bad(index: usize) -> bool {
    index % 997 == 500 || (3100..3108).contains(&index)
}

#[test]
fn errors_at_their_turn() {
    // By row, by column, and by a closure that panics.
    let by_row = || {
        DataLoader::builder(samples(LEN, |index, row, _| {
            if is_bad(index) { Err("bad".into()) } else { Ok(row.put(index as i64)?) }
        }))
    };
    each_turn(by_row, good_or(is_bad));
    let by_column = || {
        DataLoader::builder(pinfeed::try_from_fn(LEN, |index| {
            if is_bad(index) { Err("bad".into()) } else { Ok(index as i64) }
        }))
    };
    each_turn(by_column, good_or(is_bad));
}

#[test]
fn panics_at_their_turn() {
    fn panics(index: usize) -> bool {
        index == 2500 || index == 2501 || index == 4000
    }
    let data = || {
        DataLoader::builder(pinfeed::from_fn(LEN, |index| {
            assert!(!panics(index), "a bad sample");
            index as i64
        }))
    };
    each_turn(data, good_or(panics));
}

/// Strings, and another shape every hundred batches.
#[test]
fn strings_and_shapes() {
    let floats = |index: usize| index / 300 % 3;
    let data = move || {
        DataLoader::builder(samples(LEN, move |index, row, _| {
            write_rich(index, floats(index), row)
        }))
    };
    each_turn(data, move |_, samples, turn| {
        assert_eq!(check_rich(&turn.unwrap(), floats(samples[0])), samples);
    });
}

#[test]
fn misfits_at_their_turn() {
    fn odd(index: usize) -> bool {
        index % 1000 == 700
    }
    fn write(index: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        row.put(index as i64)?;
        if odd(index) { Ok(row.put(1u8)?) } else { Ok(row.put(1i8)?) }
    }
    let data = || DataLoader::builder(samples(LEN, |index, row, _| write(index, row)));
    each_turn(data, |_, samples, turn| match turn {
        Ok(batch) => {
            assert_eq!(ids(&batch), samples);
            assert!(samples.len() == 1 || !samples.iter().copied().any(odd));
        }
        Err(error) => assert!(error.is_collate() && samples.iter().copied().any(odd), "{error}"),
    });
}

/// A sampler's error stands between the batches before it and those after.
#[test]
fn a_samplers_error_at_its_turn() {
    fn bad(index: usize) -> bool {
        index % 1000 == 333
    }
    let data = || {
        let indices = || Ok((0..LEN).map(|index| if bad(index) { LEN } else { index }));
        let data = pinfeed::from_fn(LEN, |index| index as i64);
        DataLoader::builder(data).sampler(Sampled { len: LEN, indices })
    };
    each_turn(data, |_, samples, turn| match turn {
        Ok(batch) => assert_eq!(ids(&batch), samples),
        Err(error) => assert!(samples.iter().copied().any(bad), "{error}"),
    });
}

#[test]
fn a_collates_error_at_its_turn() {
    let data = || {
        DataLoader::builder(pinfeed::from_fn(LEN, |index| index as i64)).collate(
            |samples: &[pinfeed::SampleBuf], batch: &mut pinfeed::BatchMut<'_>| {
                if crate::collate::has(samples, 3000) {
                    return Err("no such batch".into());
                }
                assert!(!crate::collate::has(samples, 4000), "panics");
                crate::collate::stack(samples, batch)
            },
        )
    };
    each_turn(data, |_, samples, turn| match turn {
        Ok(batch) => assert_eq!(ids(&batch), samples),
        Err(error) => {
            assert!(samples.contains(&3000) || samples.contains(&4000), "{error}");
        }
    });
}

/// An allocator that fails, or panics, once in a while.
#[derive(Debug)]
struct Moody {
    panics: bool,
    asked: AtomicUsize,
}

impl HostAlloc for Moody {
    fn alloc(&self, bytes: usize) -> pinfeed::mem::Result<Block> {
        if self.asked.fetch_add(1, Ordering::SeqCst) % 5 != 4 {
            return Block::zeroed(bytes);
        }
        assert!(!self.panics, "the allocator panics");
        Err(pinfeed::mem::Error::no_memory(bytes, std::io::ErrorKind::OutOfMemory.into()))
    }

    fn locks(&self) -> bool {
        false
    }
}

/// No memory for one of them is that one's error, and no hang.
#[test]
fn no_memory_at_its_turn() {
    for panics in [false, true] {
        for workers in [0, 1, 3] {
            let alloc = Arc::new(Moody { panics, asked: AtomicUsize::new(0) });
            let data = pinfeed::from_fn(LEN, |index| index as i64);
            let loader = DataLoader::builder(data)
                .num_workers(workers)
                .pin_memory(PinMemory::Alloc(alloc))
                .build()
                .unwrap();
            within(LIMIT, move || {
                // All are kept: each needs a slot.
                let turns: Vec<Result<Batch>> = loader.iter().collect();
                assert_eq!(turns.len(), LEN);
                let mut errors = 0;
                for (index, turn) in turns.iter().enumerate() {
                    match turn {
                        Ok(batch) => assert_eq!(ids(batch), [index]),
                        Err(error) => {
                            errors += 1;
                            assert_eq!(Error::batch(error), Some(index as u64), "{error}");
                            assert!(error.is_out_of_memory() || error.is_panic(), "{error}");
                        }
                    }
                }
                assert!(errors > 0);
            });
        }
    }
}

/// One that does not end holds up those after it, and none before.
#[test]
fn what_is_before_a_stuck_sample_comes() {
    for (workers, persistent) in [(1, false), (2, true), (4, false)] {
        for batch_size in [1, 3] {
            for stuck in [3000, 3001, 3100, 4444] {
                let (gate, _opener) = Gate::closed();
                let held = gate.clone();
                let data = pinfeed::from_fn(LEN, move |index| {
                    if index == stuck {
                        held.pass();
                    }
                    index as i64
                });
                let loader = DataLoader::builder(data)
                    .batch_size(batch_size)
                    .num_workers(workers)
                    .persistent_workers(persistent)
                    .build()
                    .unwrap();
                within(LIMIT, move || {
                    let mut pass = loader.iter();
                    for batch in 0..stuck / batch_size {
                        assert_eq!(ids(&pass.next().unwrap().unwrap())[0], batch * batch_size);
                    }
                    assert_eq!(gate.passed(), 0);
                    gate.open();
                    assert_eq!(pass.count(), LEN / batch_size - stuck / batch_size);
                });
            }
        }
    }
}
