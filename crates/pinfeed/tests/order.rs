//! Which samples come in which batch: an oracle, PyTorch's own orders, and
//! every setting that must not matter.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{
    Gate, LIMIT, all_ids, check_rich, counting, gated, ids, in_batches, samples, sleeping, within,
    write_rich,
};
use pinfeed::{BoxError, DataLoader, Generator, Indices, Sampler};
use proptest::prelude::*;

/// One epoch: its batches, and in each the samples.
type Epoch = Vec<Vec<usize>>;

/// What a loader is asked for, as far as the order may depend on it.
#[derive(Clone, Debug)]
struct Asked {
    samples: usize,
    batch_size: usize,
    drop_last: bool,
    shuffle: bool,
    seed: u64,
}

/// The loader as one loop: PyTorch's epochs after `torch.manual_seed(seed)`.
fn oracle(asked: &Asked, epochs: usize) -> Vec<Epoch> {
    let mut torch = Generator::manual_seed(asked.seed);
    let mut all = Vec::new();
    for _ in 0..epochs {
        // The base seed of the workers, drawn whether there are any or not.
        torch.random_i64();
        let mut order: Vec<usize> = (0..asked.samples).collect();
        if asked.shuffle {
            let mut own = Generator::manual_seed(torch.random_i64() as u64);
            for i in 0..asked.samples.saturating_sub(1) {
                let other = i + own.random_u32() as usize % (asked.samples - i);
                order.swap(i, other);
            }
        }
        let mut batches = Vec::new();
        for batch in order.chunks(asked.batch_size) {
            if batch.len() == asked.batch_size || !asked.drop_last {
                batches.push(batch.to_vec());
            }
        }
        all.push(batches);
    }
    all
}

fn asked() -> impl Strategy<Value = Asked> {
    let seed = prop_oneof![any::<u64>(), 0u64..4];
    (0usize..80, 1usize..20, any::<bool>(), any::<bool>(), seed).prop_map(
        |(samples, batch_size, drop_last, shuffle, seed)| Asked {
            samples,
            batch_size,
            drop_last,
            shuffle,
            seed,
        },
    )
}

/// What must not matter for the order.
#[derive(Clone, Debug)]
struct Means {
    workers: usize,
    prefetch: Option<usize>,
    persistent: bool,
    /// After how many batches each epoch is broken off.
    breaks: Vec<Option<usize>>,
    /// Floats of a sample: with many, the batch has two slots.
    floats: usize,
}

fn means() -> impl Strategy<Value = Means> {
    let breaks = prop::collection::vec(prop::option::of(0usize..6), 1..5);
    let floats = prop::sample::select(vec![0usize, 3, 5000]);
    let prefetch = prop::option::of(1usize..4);
    (0usize..=4, prefetch, any::<bool>(), breaks, floats).prop_map(
        |(workers, prefetch, persistent, breaks, floats)| Means {
            workers,
            prefetch: prefetch.filter(|_| workers > 0),
            persistent: persistent && workers > 0,
            breaks,
            floats,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn batches_are_the_oracles(asked in asked(), means in means()) {
        let expected = oracle(&asked, means.breaks.len());
        let floats = means.floats;
        let data = samples(asked.samples, move |index, row, _| write_rich(index, floats, row));
        let mut builder = DataLoader::builder(data)
            .batch_size(asked.batch_size)
            .drop_last(asked.drop_last)
            .shuffle(asked.shuffle)
            .seed(asked.seed)
            .num_workers(means.workers)
            .persistent_workers(means.persistent);
        if let Some(prefetch) = means.prefetch {
            builder = builder.prefetch_factor(prefetch);
        }
        let loader = builder.build().unwrap();
        within(LIMIT, move || {
            for (e, (expected, broken)) in expected.iter().zip(&means.breaks).enumerate() {
                assert_eq!(loader.len(), expected.len());
                let mut pass = loader.iter();
                assert_eq!(pass.epoch(), e as u64);
                let taken = broken.unwrap_or(usize::MAX).min(expected.len());
                for (number, expected_ids) in expected[..taken].iter().enumerate() {
                    let left = expected.len() - number;
                    assert_eq!(pass.size_hint(), (left, Some(left)));
                    let batch = pass.next().unwrap().unwrap();
                    assert_eq!(batch.number(), number as u64);
                    assert_eq!(&check_rich(&batch, floats), expected_ids, "epoch {e}");
                }
                if broken.is_none() {
                    assert_eq!(pass.size_hint(), (0, Some(0)));
                    assert!(pass.next().is_none());
                    assert!(pass.next().is_none(), "ended for good");
                    let mut all: Vec<usize> = expected.concat();
                    all.sort_unstable();
                    all.dedup();
                    let each = if asked.drop_last {
                        asked.samples / asked.batch_size * asked.batch_size
                    } else {
                        asked.samples
                    };
                    assert_eq!(all.len(), each, "every sample once");
                }
            }
        });
    }
}

/// Orders that PyTorch 2.15 gave after `torch.manual_seed(seed)`: seed,
/// samples, batch size, drop_last, the epochs.
type Vector = (u64, usize, usize, bool, Vec<Epoch>);

/// From `torch_vectors.json`, so that something is compared without it too.
fn embedded() -> Vec<Vector> {
    let v = |batches: &[&[usize]]| -> Epoch { batches.iter().map(|b| b.to_vec()).collect() };
    vec![
        (
            0,
            10,
            3,
            false,
            vec![
                v(&[&[6, 7, 1], &[4, 2, 0], &[9, 8, 3], &[5]]),
                v(&[&[2, 4, 7], &[0, 8, 9], &[5, 3, 6], &[1]]),
            ],
        ),
        (
            0,
            10,
            4,
            true,
            vec![v(&[&[6, 7, 1, 4], &[2, 0, 9, 8]]), v(&[&[2, 4, 7, 0], &[8, 9, 5, 3]])],
        ),
        (0, 1, 1, false, vec![v(&[&[0]]), v(&[&[0]])]),
        (0, 7, 7, false, vec![v(&[&[0, 4, 1, 5, 2, 6, 3]]), v(&[&[3, 1, 4, 2, 5, 0, 6]])]),
        (
            42,
            16,
            4,
            false,
            vec![
                v(&[&[0, 5, 7, 10], &[3, 11, 8, 6], &[1, 9, 12, 15], &[14, 13, 2, 4]]),
                v(&[&[14, 15, 5, 11], &[7, 8, 3, 10], &[9, 12, 2, 1], &[13, 4, 6, 0]]),
            ],
        ),
        (
            (1 << 63) - 1,
            10,
            5,
            false,
            vec![
                v(&[&[0, 9, 7, 6, 2], &[1, 3, 5, 8, 4]]),
                v(&[&[0, 6, 5, 9, 7], &[8, 1, 2, 3, 4]]),
            ],
        ),
    ]
}

/// What PyTorch 2.15 gives after `torch.manual_seed(seed)`.
fn of_the_file() -> Vec<Vector> {
    let text = include_str!("data/torch_orders.json");
    let file: serde_json::Value = serde_json::from_str(text).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap() as usize;
    let cases = file["dataloader_shuffle"].as_array().unwrap().iter();
    let cases = cases.filter(|case| case["mode"] == "default" && case["persistent"] == false);
    let vectors: Vec<Vector> = cases
        .map(|case| {
            let seed = case["seed"].as_str().unwrap().parse().unwrap();
            let epochs = serde_json::from_value(case["epochs"].clone()).unwrap();
            let (samples, batch_size) = (number(&case["n"]), number(&case["batch_size"]));
            (seed, samples, batch_size, case["drop_last"].as_bool().unwrap(), epochs)
        })
        .collect();
    assert!(vectors.len() >= 15, "the file has {} cases for us", vectors.len());
    vectors
}

#[test]
fn the_order_is_pytorchs() {
    let vectors = embedded().into_iter().chain(of_the_file());
    for (seed, samples, batch_size, drop_last, epochs) in vectors {
        for (workers, persistent) in [(0, false), (2, false), (3, true)] {
            let loader = DataLoader::builder(counting(samples))
                .batch_size(batch_size)
                .drop_last(drop_last)
                .shuffle(true)
                .seed(seed)
                .num_workers(workers)
                .persistent_workers(persistent)
                .build()
                .unwrap();
            for (e, expected) in epochs.iter().enumerate() {
                let got = all_ids(&loader);
                assert_eq!(&got, expected, "seed {seed}, {samples} samples, epoch {e}");
            }
        }
    }
}

/// The e-th iterator made has the e-th order, whichever is asked first.
#[test]
fn iterators_side_by_side_keep_their_orders() {
    let asked = Asked { samples: 30, batch_size: 4, drop_last: false, shuffle: true, seed: 9 };
    let expected = oracle(&asked, 3);
    for (workers, persistent) in [(0, false), (2, false), (2, true)] {
        let loader = DataLoader::builder(counting(30))
            .batch_size(4)
            .shuffle(true)
            .seed(9)
            .num_workers(workers)
            .persistent_workers(persistent)
            .build()
            .unwrap();
        let (mut first, mut second, third) = (loader.iter(), loader.iter(), loader.iter());
        let second_half = all_ids(second.by_ref().take(3));
        assert_eq!(all_ids(third), expected[2]);
        assert_eq!(all_ids(first.by_ref()), expected[0]);
        assert_eq!([second_half, all_ids(second)].concat(), expected[1]);
    }
}

#[test]
fn epochs_and_seeds_differ() {
    let orders = |seed: Option<u64>| {
        let mut builder = DataLoader::builder(counting(50)).batch_size(7).shuffle(true);
        if let Some(seed) = seed {
            builder = builder.seed(seed);
        }
        let loader = builder.build().unwrap();
        (loader.seed(), [all_ids(&loader), all_ids(&loader), all_ids(&loader)])
    };
    let mut seen = BTreeSet::new();
    for seed in [0, 1, 2, 42] {
        for epoch in orders(Some(seed)).1 {
            assert!(seen.insert(epoch), "seed {seed}: an order came twice");
        }
    }
    // One that is picked is reported, and is another each time.
    let (picked, unseeded) = orders(None);
    assert_eq!(orders(Some(picked)).1, unseeded);
    assert_ne!(orders(None).0, picked);
}

/// BO-12: one order for all settings, in a data set where later batches are
/// ready first. Each setting several times.
#[test]
fn bo_12_the_order_does_not_depend_on_the_workers() {
    let asked = Asked { samples: 10, batch_size: 2, drop_last: false, shuffle: true, seed: 0 };
    let expected = oracle(&asked, 2);
    assert_ne!(expected[0], expected[1]);
    for (workers, prefetch) in [0, 1, 2, 3, 10, 16].map(|w| [1, 2, 8].map(|p| (w, p))).concat() {
        for _ in 0..4 {
            let data = || sleeping(10, |index| Duration::from_micros(index as u64 % 3 * 1500));
            for persistent in [false, true] {
                let mut builder = DataLoader::builder(data()).batch_size(2).shuffle(true).seed(0);
                if workers > 0 {
                    builder = builder
                        .num_workers(workers)
                        .prefetch_factor(prefetch)
                        .persistent_workers(persistent);
                }
                let loader = builder.build().unwrap();
                let (first, second) = (all_ids(&loader), all_ids(&loader));
                assert_eq!([first, second], expected[..], "{workers} workers, {prefetch} ahead");
            }
        }
    }
}

/// BO-12, widened: what a sample draws at random depends on seed, epoch and
/// index only.
#[test]
fn random_numbers_of_a_sample_do_not_depend_on_the_workers() {
    let data = || {
        samples(24, |index, row, cx| {
            row.put(index as i64)?;
            Ok(row.put(cx.sample_seed())?)
        })
    };
    let drawn = |seed: u64, workers: usize, batch_size: usize, persistent: bool| {
        let loader = DataLoader::builder(data())
            .batch_size(batch_size)
            .shuffle(true)
            .seed(seed)
            .num_workers(workers)
            .persistent_workers(persistent)
            .build()
            .unwrap();
        // The second epoch after a broken one.
        [0, 1, 2].map(|e| {
            let mut of_sample = [0u64; 24];
            for batch in loader.iter().take(if e == 1 { 1 } else { usize::MAX }) {
                let batch = batch.unwrap();
                let seeds = batch.tensor_at(1).unwrap().to_vec::<u64>().unwrap();
                for (id, seed) in ids(&batch).into_iter().zip(seeds) {
                    of_sample[id] = seed;
                }
            }
            of_sample
        })
    };
    let expected = drawn(3, 0, 5, false);
    let distinct: BTreeSet<u64> = expected[0].into_iter().chain(expected[2]).collect();
    assert_eq!(distinct.len(), 48, "another number for each sample and epoch");
    for (workers, batch_size, persistent) in
        [(0, 1, false), (1, 5, false), (2, 7, true), (4, 24, false), (3, 2, true)]
    {
        let got = drawn(3, workers, batch_size, persistent);
        assert_eq!((got[0], got[2]), (expected[0], expected[2]), "{workers} workers");
    }
    assert_ne!(drawn(4, 0, 5, false)[0], expected[0]);
}

#[test]
fn in_no_order_each_sample_comes_once() {
    for (workers, persistent) in [(0, false), (1, false), (2, false), (4, true)] {
        for batch_size in [1, 3, 10] {
            let data = sleeping(40, |index| Duration::from_micros(index as u64 * 7 % 11 * 100));
            let loader = DataLoader::builder(data)
                .batch_size(batch_size)
                .num_workers(workers)
                .persistent_workers(persistent)
                .in_order(false)
                .build()
                .unwrap();
            for _ in 0..3 {
                let mut pass = loader.iter();
                let mut numbers = Vec::new();
                let mut batches = Vec::new();
                while let Some(batch) = pass.next() {
                    let batch = batch.unwrap();
                    numbers.push(batch.number());
                    batches.push(ids(&batch));
                    let left = loader.len() - batches.len();
                    assert_eq!(pass.size_hint(), (left, Some(left)));
                }
                // The batches are those of the order; only their turn is not.
                for (number, batch) in numbers.iter().zip(&batches) {
                    assert_eq!(batch, &in_batches(40, batch_size)[*number as usize]);
                }
                batches.sort();
                assert_eq!(batches, in_batches(40, batch_size));
            }
        }
    }
}

#[test]
fn in_no_order_a_slow_batch_holds_up_no_other() {
    for persistent in [false, true] {
        let (gate, _opener) = Gate::closed();
        let loader = DataLoader::builder(gated(60, 0, &gate))
            .batch_size(3)
            .num_workers(2)
            .persistent_workers(persistent)
            .in_order(false)
            .build()
            .unwrap();
        within(LIMIT, move || {
            let mut pass = loader.iter();
            let others = all_ids(pass.by_ref().take(19));
            assert_eq!(gate.passed(), 0);
            let mut expected = in_batches(60, 3)[1..].to_vec();
            let mut sorted = others.clone();
            sorted.sort();
            expected.sort();
            assert_eq!(sorted, expected);
            gate.open();
            assert_eq!(all_ids(pass), [[0, 1, 2]]);
        });
    }
}

/// In order, a slow batch is helped: its other rows are made meanwhile, and
/// it still comes first.
#[test]
fn in_order_a_slow_batch_comes_first() {
    let (gate, _opener) = Gate::closed();
    let loader =
        DataLoader::builder(gated(40, 0, &gate)).batch_size(4).num_workers(2).build().unwrap();
    within(LIMIT, move || {
        let mut pass = loader.iter();
        gate.wait_for_arrivals(1);
        let opening = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            gate.open();
        });
        let first = pass.next().unwrap().unwrap();
        assert_eq!(ids(&first), [0, 1, 2, 3]);
        assert_eq!(all_ids(pass), in_batches(40, 4)[1..]);
        opening.join().unwrap();
    });
}

/// Each index as often as the generator says: what a sampler draws comes from
/// the loader's generator, in the epoch's turn.
struct Weighted(usize);

impl Sampler for Weighted {
    fn indices(&self, generator: &mut Generator) -> Result<Box<dyn Indices>, BoxError> {
        let drawn: Vec<usize> =
            (0..self.0).map(|_| generator.random_u32() as usize % self.0).collect();
        Ok(Box::new(drawn.into_iter()))
    }

    fn len(&self) -> usize {
        self.0
    }
}

#[test]
fn a_sampler_of_ones_own() {
    let mut torch = Generator::manual_seed(11);
    let expected: Vec<Epoch> = (0..3)
        .map(|_| {
            torch.random_i64();
            let drawn: Vec<usize> = (0..20).map(|_| torch.random_u32() as usize % 20).collect();
            drawn.chunks(6).map(<[usize]>::to_vec).collect()
        })
        .collect();
    for workers in [0, 1, 3] {
        let loader = DataLoader::builder(counting(20))
            .batch_size(6)
            .sampler(Weighted(20))
            .seed(11)
            .num_workers(workers)
            .build()
            .unwrap();
        assert_eq!(all_ids(&loader), expected[0]);
        drop(loader.iter());
        assert_eq!(all_ids(&loader), expected[2], "{workers} workers");
    }
}

/// Loaders do not share what they draw from.
#[test]
fn loaders_do_not_disturb_each_other() {
    let asked = Asked { samples: 64, batch_size: 8, drop_last: false, shuffle: true, seed: 5 };
    let expected = Arc::new(oracle(&asked, 4));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let expected = Arc::clone(&expected);
            thread::spawn(move || {
                let loader = DataLoader::builder(counting(64))
                    .batch_size(8)
                    .shuffle(true)
                    .seed(5)
                    .num_workers(2)
                    .build()
                    .unwrap();
                for epoch in expected.iter() {
                    assert_eq!(&all_ids(&loader), epoch);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// As many rows as `usize` counts: the last batch is what there is.
#[test]
fn a_batch_larger_than_the_data_set() {
    for workers in [0, 2] {
        for batch_size in [11, 1 << 40, usize::MAX] {
            let build = |drop_last: bool| {
                DataLoader::builder(counting(10))
                    .batch_size(batch_size)
                    .drop_last(drop_last)
                    .num_workers(workers)
                    .build()
                    .unwrap()
            };
            assert_eq!(all_ids(build(false)), in_batches(10, 10));
            let loader = build(true);
            assert!(loader.is_empty());
            assert_eq!(loader.iter().count(), 0);
        }
    }
}
