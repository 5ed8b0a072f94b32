//! [`Context`]: what a data set may know about the call it serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::sample::SampleBuf;

/// What a data set may know about the call it serves, and scratch memory that
/// the worker keeps from sample to sample.
#[derive(Debug)]
pub struct Context {
    epoch: u64,
    seed: u64,
    worker: Option<usize>,
    /// The sample being made; read by the iterator to name a stuck one.
    index: Arc<AtomicUsize>,
    /// Set when the iterator was dropped.
    cancelled: Arc<AtomicBool>,
    buffers: Vec<Vec<u8>>,
    samples: Vec<SampleBuf>,
}

impl Context {
    pub(crate) fn new(worker: Option<usize>, index: Arc<AtomicUsize>) -> Self {
        Context {
            epoch: 0,
            seed: 0,
            worker,
            index,
            cancelled: Arc::default(),
            buffers: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// Turns to an iterator's work.
    pub(crate) fn serve(&mut self, epoch: u64, seed: u64) {
        self.epoch = epoch;
        self.seed = seed;
    }

    /// What tells that the iterator was dropped. (The caller of `next()` needs
    /// none: it has the iterator.)
    pub(crate) fn watch(&mut self, cancelled: &Arc<AtomicBool>) {
        if !Arc::ptr_eq(&self.cancelled, cancelled) {
            self.cancelled = Arc::clone(cancelled);
        }
    }

    /// The epoch, from 0: the number of the loader's iterator.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The worker thread's number, from 0; `None` for `num_workers = 0`, where
    /// the caller of `next()` does the work.
    pub fn worker(&self) -> Option<usize> {
        self.worker
    }

    /// The index of the sample being made.
    pub fn index(&self) -> usize {
        self.index.load(Ordering::Relaxed)
    }

    /// A seed for this sample's random numbers: a function of the loader's
    /// seed, the epoch and the index, whatever the number of workers.
    pub fn sample_seed(&self) -> u64 {
        let mut hash = mix(self.seed ^ 0x9e37_79b9_7f4a_7c15);
        hash = mix(hash ^ self.epoch);
        mix(hash ^ self.index() as u64)
    }

    /// Was the iterator dropped? A data set with long samples may stop then.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// An empty buffer that has kept its capacity from an earlier sample of
    /// this worker. Give it back with [`give_buffer`](Context::give_buffer).
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// Gives back a buffer for the next sample.
    pub fn give_buffer(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.buffers.push(buffer);
    }

    /// An empty sample that has kept its memory.
    pub fn take_sample(&mut self) -> SampleBuf {
        self.samples.pop().unwrap_or_default()
    }

    /// Gives back a sample's memory for the next.
    pub fn give_sample(&mut self, mut sample: SampleBuf) {
        sample.clear();
        self.samples.push(sample);
    }

    #[inline]
    pub(crate) fn enter(&mut self, index: usize) {
        self.index.store(index, Ordering::Relaxed);
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection that
/// spreads every input bit over all output bits.
pub(super) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
