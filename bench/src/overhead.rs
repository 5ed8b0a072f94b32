//! What the loader itself costs a batch, against dataloader-rs on its own data
//! sets: samples that cost nothing (`InMemoryDs`), and samples of about 0.1 ms
//! of arithmetic (`HeavyCpuDs`), as its benches have them.

use std::hint::black_box;

use dataloader_rs::collator::Collator;
use dataloader_rs::error::Result as TheirResult;
use pinfeed::{BoxError, Context, DataLoader, Dataset, Row, from_fn};

use crate::row::{in_turn, row};

const SAMPLES: usize = 4096;
const HEAVY: usize = 128;
/// Batches between the loader and its user, for both.
const WINDOW: usize = 16;

struct InMemoryDs(usize);

impl dataloader_rs::Dataset for InMemoryDs {
    type Item = u64;

    fn get(&self, index: usize) -> TheirResult<u64> {
        Ok(index as u64)
    }

    fn len(&self) -> usize {
        self.0
    }
}

/// The same, written as a data set of one's own, a row at a time.
impl Dataset for InMemoryDs {
    fn len(&self) -> usize {
        self.0
    }

    fn get(&self, index: usize, row: &mut Row<'_>, _: &mut Context) -> Result<(), BoxError> {
        Ok(row.put(index as u64)?)
    }
}

struct HeavyCpuDs(usize);

fn heavy(index: usize) -> u8 {
    let mut acc = black_box(100_000u64) | 1;
    for _ in 0..100_000 {
        acc ^= acc >> 29;
        acc = acc.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (black_box(acc) ^ index as u64) as u8
}

impl dataloader_rs::Dataset for HeavyCpuDs {
    type Item = Vec<u8>;

    fn get(&self, index: usize) -> TheirResult<Vec<u8>> {
        Ok(vec![heavy(index); 256])
    }

    fn len(&self) -> usize {
        self.0
    }
}

struct Sum;

impl Collator<u64> for Sum {
    type Batch = u64;

    fn collate(&self, items: Vec<u64>) -> TheirResult<u64> {
        Ok(items.iter().sum())
    }
}

struct Cat;

impl Collator<Vec<u8>> for Cat {
    type Batch = Vec<u8>;

    fn collate(&self, items: Vec<Vec<u8>>) -> TheirResult<Vec<u8>> {
        Ok(items.into_iter().flatten().collect())
    }
}

fn loader<D: Dataset>(dataset: D, batch_size: usize, workers: usize) -> DataLoader<D> {
    let builder = DataLoader::builder(dataset).batch_size(batch_size).num_workers(workers);
    let builder = match workers {
        0 => builder,
        _ => builder.prefetch_factor((WINDOW + workers) / workers).persistent_workers(true),
    };
    builder.build().expect("settings")
}

fn drain<D: Dataset>(loader: &DataLoader<D>) {
    for batch in loader {
        black_box(batch.expect("a batch"));
    }
}

pub fn run(quick: bool) {
    let runs = if quick { 3 } else { 300 };
    for workers in [0, 2] {
        for batch_size in [1, 32, 128, 512, 1024, 4096] {
            let batches = (SAMPLES / batch_size) as f64;
            let mut theirs = dataloader_rs::DataLoader::builder(InMemoryDs(SAMPLES))
                .batch_size(batch_size)
                .num_workers(workers)
                .prefetch_depth(WINDOW)
                .collator(Sum)
                .build();
            let setting = format!("batch {batch_size} workers {workers}");
            let mut compare = |case: &str, ours: &dyn Fn()| {
                let theirs = || {
                    theirs.iter().for_each(|batch| {
                        black_box(batch.expect("a batch"));
                    })
                };
                let (ours, theirs) = in_turn(runs, ours, theirs);
                let ns = |seconds: f64| seconds * 1e9 / batches;
                row(case, &setting, "ns/batch", ns(ours), "dataloader-rs 0.2.0", ns(theirs));
            };
            let closure = loader(from_fn(SAMPLES, |i| i as u64), batch_size, workers);
            compare("InMemoryDs (from_fn)", &|| drain(&closure));
            let by_row = loader(InMemoryDs(SAMPLES), batch_size, workers);
            compare("InMemoryDs (get)", &|| drain(&by_row));
        }
    }
    let runs = if quick { 1 } else { 15 };
    for (workers, batch_size) in [(0, 32), (2, 32), (2, 128)] {
        let mut theirs = dataloader_rs::DataLoader::builder(HeavyCpuDs(HEAVY))
            .batch_size(batch_size)
            .num_workers(workers)
            .prefetch_depth(WINDOW)
            .collator(Cat)
            .build();
        let ours = loader(from_fn(HEAVY, |i| [heavy(i); 256]), batch_size, workers);
        let (ours, theirs) = in_turn(
            runs,
            || drain(&ours),
            || {
                theirs.iter().for_each(|batch| {
                    black_box(batch.expect("a batch"));
                })
            },
        );
        let us = |seconds: f64| seconds * 1e6 / (HEAVY / batch_size) as f64;
        let setting = format!("batch {batch_size} workers {workers}");
        row("HeavyCpuDs", &setting, "us/batch", us(ours), "dataloader-rs 0.2.0", us(theirs));
    }
}
