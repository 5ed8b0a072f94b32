//! One loader, several iterators, several threads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pinfeed::{BoxError, DataLoader, Generator, Indices, Iter, PinMemory, Sampler};

use crate::common::{
    LIMIT, all_ids, among_others, counting, eventually, ids, in_batches, samples, sleeping, within,
};
use crate::{CREWS, crew};

/// Side by side, batch by batch, each has its own order; neither waits for the
/// other, though both use the same workers and memory.
#[test]
fn two_live_iterators() {
    let _turn = among_others();
    for threads in CREWS {
        let loader =
            crew(DataLoader::builder(counting(60)).batch_size(4), threads).build().unwrap();
        within(LIMIT, move || {
            for _ in 0..5 {
                let (mut one, mut other) = (loader.iter(), loader.iter());
                // One is far ahead of the other.
                let ahead = all_ids(one.by_ref().take(10));
                let mut pairs = Vec::new();
                for batch in one {
                    let (a, b) = (batch.unwrap(), other.next().unwrap().unwrap());
                    pairs.push((ids(&a), ids(&b)));
                }
                assert_eq!(pairs.len(), 5);
                let (ones, others): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
                assert_eq!([ahead, ones].concat(), in_batches(60, 4));
                let rest = all_ids(other);
                assert_eq!([others, rest].concat(), in_batches(60, 4));
            }
        });
    }
}

/// An iterator that is alive and not asked holds up no other.
#[test]
fn many_idle_iterators() {
    let _turn = among_others();
    for threads in CREWS {
        let loader =
            crew(DataLoader::builder(counting(60)).batch_size(4), threads).build().unwrap();
        within(LIMIT, move || {
            let idle: Vec<_> = (0..20).map(|_| loader.iter()).collect();
            assert_eq!(all_ids(&loader), in_batches(60, 4));
            for pass in idle {
                assert_eq!(all_ids(pass), in_batches(60, 4));
            }
        });
    }
}

#[test]
fn an_iterator_goes_to_another_thread() {
    let _turn = among_others();
    for threads in CREWS {
        let loader =
            crew(DataLoader::builder(counting(60)).batch_size(4), threads).build().unwrap();
        let mut pass = loader.iter();
        let first = ids(&pass.next().unwrap().unwrap());
        let other = thread::spawn(move || {
            let second = ids(&pass.next().unwrap().unwrap());
            (second, pass)
        });
        let (second, pass) = other.join().unwrap();
        let rest = within(LIMIT, move || all_ids(pass));
        assert_eq!([vec![first, second], rest].concat(), in_batches(60, 4));
    }
}

#[test]
fn several_threads_iterate_one_loader() {
    let _turn = among_others();
    for threads in CREWS {
        let loader =
            crew(DataLoader::builder(counting(60)).batch_size(4), threads).build().unwrap();
        within(LIMIT, move || {
            thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| {
                        for _ in 0..5 {
                            assert_eq!(all_ids(&loader), in_batches(60, 4));
                        }
                    });
                }
            });
            assert_eq!(loader.iter().epoch(), 30);
        });
    }
}

/// The iterator has all it needs; so have batches, and tensors of them.
#[test]
fn an_iterator_outlives_its_loader() {
    let _turn = among_others();
    for threads in CREWS {
        for pin_memory in [PinMemory::Off, PinMemory::PageLock] {
            let data = Arc::new(sleeping(60, |_| Duration::from_micros(100)));
            let builder = DataLoader::builder(Arc::clone(&data)).batch_size(4);
            let loader = crew(builder.pin_memory(pin_memory), threads).build().unwrap();
            let (fresh, mut begun) = (loader.iter(), loader.iter());
            let first = begun.next().unwrap().unwrap();
            drop(loader);
            let batches = within(LIMIT, move || {
                assert_eq!(all_ids(fresh), in_batches(60, 4));
                begun.collect::<pinfeed::Result<Vec<_>>>().unwrap()
            });
            eventually("the workers leave", || Arc::strong_count(&data) == 1);
            assert_eq!(ids(&first), [0, 1, 2, 3]);
            assert_eq!(ids(&batches[13]), [56, 57, 58, 59]);
            let tensor = batches[13].tensor_at(0).unwrap();
            drop((first, batches));
            assert_eq!(tensor.to_vec::<i64>().unwrap(), [56, 57, 58, 59]);
        }
    }
}

/// BO-08: passes broken off and begun again, with the same workers: no batch of
/// an abandoned pass is ever given.
#[test]
fn bo_08_persistent_workers() {
    let _turn = among_others();
    for workers in [1, 4] {
        let seen = Arc::new(Mutex::new(BTreeMap::<usize, BTreeSet<String>>::new()));
        let told = Arc::clone(&seen);
        let data = samples(40, move |index, row, cx| {
            let thread: ThreadId = thread::current().id();
            let worker = cx.worker().ok_or("no worker")?;
            told.lock().unwrap().entry(worker).or_default().insert(format!("{thread:?}"));
            thread::sleep(Duration::from_micros(100));
            row.put(index as i64)?;
            Ok(row.put(cx.epoch())?)
        });
        let data = Arc::new(data);
        let loader = DataLoader::builder(Arc::clone(&data))
            .batch_size(4)
            .shuffle(true)
            .num_workers(workers)
            .persistent_workers(true)
            .pin_memory(PinMemory::PageLock)
            .build()
            .unwrap();
        within(LIMIT, move || {
            // So many batches, checked.
            let take = |batches: usize| {
                let pass = loader.iter();
                let epoch = pass.epoch();
                let mut all = Vec::new();
                for batch in pass.take(batches) {
                    let batch = batch.unwrap();
                    assert_eq!(batch.number() as usize, all.len() / 4);
                    let epochs = batch.tensor_at(1).unwrap().to_vec::<u64>().unwrap();
                    assert_eq!(epochs, [epoch; 4], "a batch of another pass");
                    all.extend(ids(&batch));
                }
                all
            };
            let whole = || {
                let mut all = take(usize::MAX);
                all.sort_unstable();
                assert!(all.into_iter().eq(0..40), "each once");
            };
            assert_eq!(take(1).len(), 4);
            assert_eq!(take(1).len(), 4);
            whole();
            for pass in 0..20 {
                let batches = 1 + pass % 9;
                assert_eq!(take(batches).len(), 4 * batches);
            }
            whole();
            assert!(loader.warnings().iter().all(|warning| !warning.contains("stuck")));
        });
        let seen = seen.lock().unwrap();
        assert!(seen.keys().all(|&worker| worker < workers));
        for (worker, threads) in &*seen {
            assert_eq!(threads.len(), 1, "worker {worker} is the same thread in all passes");
        }
        eventually("the workers leave", || Arc::strong_count(&data) == 1);
    }
}

/// Without workers the caller of `next` does the work, whoever it is.
#[test]
fn no_workers_no_threads() {
    let _turn = among_others();
    let data = samples(20, |index, row, cx| {
        assert_eq!(cx.worker(), None);
        row.put(index as i64)?;
        row.put_text(&format!("{:?}", thread::current().id()));
        Ok(())
    });
    let loader = DataLoader::builder(data).batch_size(5).build().unwrap();
    let check = |pass: &mut Iter<_>, number: usize| {
        let batch = pass.next().unwrap().unwrap();
        assert_eq!(ids(&batch), in_batches(20, 5)[number]);
        let me = format!("{:?}", thread::current().id());
        assert_eq!(batch.field_at(1).unwrap(), pinfeed::BatchField::Text(vec![me; 5]));
    };
    let mut pass = loader.iter();
    check(&mut pass, 0);
    let mut pass = thread::scope(|scope| {
        let there = scope.spawn(|| {
            check(&mut pass, 1);
            pass
        });
        there.join().unwrap()
    });
    check(&mut pass, 2);
}

struct Nothing;

impl Sampler for Nothing {
    fn indices(&self, _: &mut Generator) -> Result<Box<dyn Indices>, BoxError> {
        Ok(Box::new(std::iter::empty()))
    }

    fn len(&self) -> usize {
        0
    }
}

/// BO-02: epochs without batches.
#[test]
fn bo_02_epochs_of_length_zero() {
    let _turn = among_others();
    for threads in CREWS {
        for pin_memory in [PinMemory::Off, PinMemory::On, PinMemory::PageLock] {
            for case in 0..4 {
                let data = Arc::new(counting(if case < 2 { 0 } else { 3 }));
                let builder = DataLoader::builder(Arc::clone(&data)).batch_size(4);
                let builder = crew(builder, threads).pin_memory(pin_memory.clone());
                let builder = match case {
                    0 => builder,
                    1 => builder.shuffle(true),
                    2 => builder.drop_last(true),
                    _ => builder.sampler(Nothing),
                };
                let loader = builder.build().unwrap();
                within(LIMIT, move || {
                    assert!(loader.is_empty());
                    for _ in 0..3 {
                        let mut pass = loader.iter();
                        assert_eq!(pass.size_hint(), (0, Some(0)));
                        assert!(pass.next().is_none() && pass.next().is_none());
                    }
                    drop(loader.iter());
                    let memory = loader.memory();
                    assert_eq!(
                        (memory.slab.slots, memory.small.slots),
                        (0, 0),
                        "no batch, no slot"
                    );
                });
                eventually("the workers leave", || Arc::strong_count(&data) == 1);
            }
        }
    }
}
