//! CIFAR-10's shape in memory to float batches, against a bare loop of the same
//! conversion on as many threads.

use std::hint::black_box;
use std::thread;

use pinfeed::{DataLoader, Dataset, Synthetic, ToTensor};

use crate::row::{in_turn, row};

const BATCH: usize = 1024;
const PIXELS: usize = 32 * 32 * 3;
/// As many as the loader has: two tickets a worker, and the one in hand.
const SLOTS: usize = 5;

pub fn run(quick: bool) {
    let samples = if quick { 5_000 } else { 50_000 };
    let runs = if quick { 1 } else { 9 };
    for (workers, shuffle) in [(2, false), (2, true)] {
        let images = Synthetic::images(samples, [32, 32, 3], 10, 0).expect("memory");
        let loader = DataLoader::builder(images.map(ToTensor::new()))
            .batch_size(BATCH)
            .num_workers(workers)
            .shuffle(shuffle)
            .persistent_workers(true)
            .build()
            .expect("settings");
        let mut bare = Bare::new(samples, workers);
        let (ours, theirs) = in_turn(
            runs,
            || {
                for batch in &loader {
                    black_box(batch.expect("a batch"));
                }
            },
            || bare.run(),
        );
        let rate = |seconds: f64| samples as f64 / seconds;
        let order = if shuffle { "shuffled" } else { "in order" };
        let setting = format!("batch {BATCH} workers {workers} {order}");
        row("CIFAR-10 arrays to f32", &setting, "img/s", rate(ours), "bare loop", rate(theirs));
    }
}

/// The same pixels, converted by threads that do nothing else: each takes its
/// share of every batch, to memory that is had once and used in turn, as the
/// loader's slots are.
struct Bare {
    images: Vec<u8>,
    /// For each thread, its part of each slot.
    slots: Vec<[Vec<f32>; SLOTS]>,
}

impl Bare {
    fn new(samples: usize, threads: usize) -> Self {
        let images = (0..samples * PIXELS).map(|i| ((i * 31) >> 3) as u8).collect();
        let part = BATCH / threads * PIXELS;
        let slots = (0..threads).map(|_| std::array::from_fn(|_| vec![0f32; part])).collect();
        Bare { images, slots }
    }

    fn run(&mut self) {
        let convert = ToTensor::new();
        let samples = self.images.len() / PIXELS;
        let share = samples.div_ceil(self.slots.len()) * PIXELS;
        thread::scope(|scope| {
            for (images, slots) in self.images.chunks(share).zip(&mut self.slots) {
                let convert = &convert;
                scope.spawn(move || {
                    let part = slots[0].len();
                    for (n, batch) in images.chunks(part).enumerate() {
                        let slot = &mut slots[n % SLOTS];
                        let rows = slot.chunks_exact_mut(PIXELS);
                        for (src, dst) in batch.chunks_exact(PIXELS).zip(rows) {
                            convert.convert(src, 3, dst).expect("equal lengths");
                        }
                        black_box(slot);
                    }
                });
            }
        });
    }
}
