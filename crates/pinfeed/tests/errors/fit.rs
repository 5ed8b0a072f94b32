//! BO-18: samples that do not fit together into a batch.

use std::collections::BTreeSet;

use pinfeed::{Batch, BoxError, DType, DataLoader, Dataset, PinMemory, Result, Row, Spec, Tensor};

use crate::common::{
    LIMIT, check_rich, may_lock, samples, text_without_worker, within, write_rich,
};
use crate::{WORKERS, failed, turns};

type Write = fn(usize, &mut Row<'_>) -> Result<(), BoxError>;

fn good(index: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
    row.named("id").put(index as i64)?;
    row.named("image").tensor::<f32>(&[3, 4, 4])?.fill(index as f32);
    row.named("word").put_text("word");
    Ok(())
}

/// Eight samples, of which `index` is written by `write`.
fn one_odd(index: usize, write: Write, with_spec: bool) -> impl Dataset + 'static {
    let data = samples(8, move |i, row, _| if i == index { write(i, row) } else { good(i, row) });
    if !with_spec {
        return data;
    }
    let spec = Spec::new().tensor("id", DType::I64, &[]).unwrap();
    let spec = spec.tensor("image", DType::F32, &[3, 4, 4]).unwrap().text("word");
    data.with_spec(spec)
}

/// What may be odd about a sample, and what the message must say.
fn oddities() -> [(Write, &'static [&'static str]); 7] {
    [
        (
            |index, row| {
                row.named("id").put(index as i64)?;
                row.named("image").tensor::<f32>(&[3, 4, 3])?.fill(0.0);
                row.named("word").put_text("word");
                Ok(())
            },
            &["`image`", "[3, 4, 3]", "[3, 4, 4]"],
        ),
        (
            |index, row| {
                row.named("id").put(index as i64)?;
                row.named("image").tensor::<f32>(&[48])?.fill(0.0);
                row.named("word").put_text("word");
                Ok(())
            },
            &["`image`", "[48]", "[3, 4, 4]"],
        ),
        (
            |index, row| {
                row.named("id").put(index as i64)?;
                row.named("image").tensor::<i32>(&[3, 4, 4])?.fill(0);
                row.named("word").put_text("word");
                Ok(())
            },
            &["`image`", "i32", "f32"],
        ),
        (
            |index, row| {
                row.named("id").put(index as i64)?;
                row.named("picture").tensor::<f32>(&[3, 4, 4])?.fill(0.0);
                row.named("word").put_text("word");
                Ok(())
            },
            &["image", "picture"],
        ),
        (
            |index, row| {
                row.named("id").put(index as i64)?;
                row.named("image").tensor::<f32>(&[3, 4, 4])?.fill(0.0);
                row.named("word").put_bytes(b"word");
                Ok(())
            },
            &["`word`", "text", "bytes"],
        ),
        (
            |index, row| {
                good(index, row)?;
                Ok(row.named("more").put(1u8)?)
            },
            &["4 fields", "3"],
        ),
        (|index, row| Ok(row.named("id").put(index as i64)?), &["1 fields", "3"]),
    ]
}

#[test]
fn bo_18_one_text_for_all_settings() {
    let may_lock = may_lock(1 << 20);
    for (write, parts) in oddities() {
        let mut texts = BTreeSet::new();
        for workers in WORKERS {
            for with_spec in [false, true] {
                for pin_memory in [PinMemory::Off, PinMemory::PageLock] {
                    if matches!(pin_memory, PinMemory::PageLock) && !may_lock {
                        continue;
                    }
                    let loader = DataLoader::builder(one_odd(6, write, with_spec))
                        .batch_size(8)
                        .num_workers(workers)
                        .pin_memory(pin_memory)
                        .build()
                        .unwrap();
                    let mut pass = loader.iter();
                    let error = pass.next().unwrap().unwrap_err();
                    assert!(error.is_collate(), "{error}");
                    assert_eq!((error.index(), error.batch()), (Some(6), Some(0)), "{error}");
                    assert!(pass.next().is_none());
                    drop(pass);
                    let text = error.to_string();
                    for part in parts.iter().chain(&["sample 6"]) {
                        assert!(text.contains(part), "{part} in: {text}");
                    }
                    let memory = loader.memory();
                    assert_eq!((memory.slab.in_use, memory.small.in_use), (0, 0), "no leak");
                    texts.insert(text_without_worker(&error));
                }
            }
        }
        assert_eq!(texts.len(), 1, "one text: {texts:#?}");
    }
}

/// The whole text is one, the number of a worker that happened to end the
/// batch included: whoever did has nothing to do with it.
#[test]
fn bo_18_no_worker_is_to_blame() {
    let mut texts = BTreeSet::new();
    for workers in WORKERS {
        let (write, _) = oddities()[0];
        let loader = DataLoader::builder(one_odd(6, write, false))
            .batch_size(8)
            .num_workers(workers)
            .build()
            .unwrap();
        texts.insert(loader.iter().next().unwrap().unwrap_err().to_string());
    }
    assert_eq!(texts.len(), 1, "{texts:#?}");
}

/// The odd one first, in the middle, last; in the last batch; and another
/// epoch, where the loader knows a layout already.
#[test]
fn bo_18_wherever_the_odd_one_is() {
    for (write, _) in oddities() {
        for (odd, batch_size) in [(0, 8), (1, 8), (3, 8), (7, 8), (6, 4), (4, 4), (7, 7), (6, 2)] {
            let mut texts = BTreeSet::new();
            for workers in WORKERS {
                for with_spec in [false, true] {
                    let loader = DataLoader::builder(one_odd(odd, write, with_spec))
                        .batch_size(batch_size)
                        .num_workers(workers)
                        .build()
                        .unwrap();
                    for _ in 0..3 {
                        let turns = within(LIMIT, {
                            let pass = loader.iter();
                            move || turns_of_any(pass)
                        });
                        assert_eq!(turns.len(), 8usize.div_ceil(batch_size));
                        for (number, turn) in turns.iter().enumerate() {
                            let first = number * batch_size;
                            let end = (first + batch_size).min(8);
                            // Alone in its batch, no sample is odd.
                            let fails = (first..end).contains(&odd) && end - first > 1;
                            match turn {
                                Ok(samples) => assert_eq!((*samples, fails), (end - first, false)),
                                Err((text, index)) => {
                                    assert!(fails, "{text}");
                                    // The first sample decides.
                                    let blamed = if odd == first { first + 1 } else { odd };
                                    assert_eq!(*index, Some(blamed), "{text}");
                                    texts.insert(text.clone());
                                }
                            }
                        }
                    }
                }
            }
            assert!(texts.len() <= 1, "one text: {texts:#?}");
        }
    }
}

/// A good epoch after a bad one: nothing of it is left, in the slots or beside.
#[test]
fn bo_18_a_good_epoch_after() {
    for workers in WORKERS {
        for pin_memory in [PinMemory::Off, PinMemory::PageLock] {
            let data = samples(24, |index, row, cx| {
                let odd = cx.epoch() % 2 == 0 && index % 8 == 6;
                write_rich(index, if odd { 299 } else { 300 }, row)
            });
            let loader = DataLoader::builder(data)
                .batch_size(8)
                .num_workers(workers)
                .pin_memory(pin_memory)
                .build()
                .unwrap();
            for epoch in 0..6 {
                for (number, turn) in loader.iter().enumerate() {
                    match turn {
                        Ok(batch) => {
                            let first = number * 8;
                            let expected: Vec<_> = (first..first + 8).collect();
                            assert_eq!(check_rich(&batch, 300), expected);
                            assert_eq!(epoch % 2, 1);
                        }
                        Err(error) => {
                            assert_eq!(epoch % 2, 0, "{error}");
                            assert_eq!(error.index(), Some(number * 8 + 6), "{error}");
                        }
                    }
                }
                let memory = loader.memory();
                assert_eq!((memory.slab.in_use, memory.small.in_use), (0, 0));
            }
        }
    }
}

/// As `turns`, where only the number of samples counts.
fn turns_of_any(
    pass: impl IntoIterator<Item = Result<Batch>>,
) -> Vec<Result<usize, (String, Option<usize>)>> {
    pass.into_iter()
        .map(|batch| match batch {
            Ok(batch) => Ok(batch.len()),
            Err(error) => Err((text_without_worker(&error), error.index())),
        })
        .collect()
}

/// One that fails and one that is odd: the same is reported for all settings.
#[test]
fn a_failure_and_a_misfit_in_one_batch() {
    for (odd, bad) in [(2, 5), (5, 2), (0, 7), (7, 0)] {
        let mut texts = BTreeSet::new();
        for workers in WORKERS {
            for _ in 0..3 {
                let data = samples(8, move |index, row, _| {
                    if index == bad {
                        return Err("bad".into());
                    }
                    let floats = if index == odd { 2 } else { 3 };
                    write_rich(index, floats, row)
                });
                let loader =
                    DataLoader::builder(data).batch_size(8).num_workers(workers).build().unwrap();
                let error = loader.iter().next().unwrap().unwrap_err();
                texts.insert(text_without_worker(&error));
            }
        }
        assert_eq!(texts.len(), 1, "{texts:#?}");
    }
}

/// A tensor as a sample: what `from_fn` is asked for most.
#[test]
fn tensors_that_do_not_fit() {
    let data = pinfeed::from_fn(6, |index| Tensor::full(&[1 + index / 5], index as i64).unwrap());
    let loader = DataLoader::builder(data).batch_size(3).build().unwrap();
    let turns = turns(&loader);
    assert_eq!(failed(&turns), [1]);
    let text = turns[1].as_ref().unwrap_err();
    assert!(text.contains("i64 [2]") && text.contains("i64 [1]"), "{text}");
}
