//! A folder of JPEG files to u8 batches, against a bare loop that reads the
//! same files and decodes them with the same decoder, on as many threads.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pinfeed::{DataLoader, Dataset, ImageFolder, Subset};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;

use crate::row::{in_turn, row};

const BATCH: usize = 1024;
const THREADS: usize = 2;

pub fn run(dir: &Path, quick: bool) {
    let folder = ImageFolder::open(dir).expect("a folder of class folders");
    let samples = folder.len().min(if quick { 500 } else { 20_000 });
    let every = folder.len() / samples;
    let indices: Vec<usize> = (0..samples).map(|i| i * every).collect();
    let paths: Vec<PathBuf> = indices.iter().filter_map(|&i| folder.path_of(i)).collect();
    let loader = DataLoader::builder(Subset::new(folder, indices).expect("indices"))
        .batch_size(BATCH)
        .num_workers(THREADS)
        .persistent_workers(true)
        .build()
        .expect("settings");
    let (ours, theirs) = in_turn(
        if quick { 1 } else { 7 },
        || {
            for batch in &loader {
                black_box(batch.expect("a batch"));
            }
        },
        || bare(&paths),
    );
    let rate = |seconds: f64| samples as f64 / seconds;
    let setting = format!("batch {BATCH} workers {THREADS}");
    row("CIFAR-10 JPEG files to u8", &setting, "img/s", rate(ours), "bare loop", rate(theirs));
}

fn bare(paths: &[PathBuf]) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut pixels = vec![0u8; BATCH * 32 * 32 * 3];
                let mut row = 0;
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let bytes = std::fs::read(path).expect("a file");
                    let mut decoder = JpegDecoder::new(ZCursor::new(&bytes[..]));
                    let out = &mut pixels[row * 3072..][..3072];
                    decoder.decode_into(out).expect("an image");
                    row = (row + 1) % BATCH;
                }
                black_box(pixels);
            });
        }
    });
}
