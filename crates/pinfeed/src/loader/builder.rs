//! The builder: PyTorch's settings, checked once.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use pinfeed_mem::Moment;

use super::DataLoader;
use super::shared::{Epochs, Guess, Order, Settings, Shared};
use crate::collate::{Collate, Layout};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::memory::{Memory, PinMemory};
use crate::sampler::{Generator, Sampler};

/// Tickets per worker, unless set: PyTorch's.
const PREFETCH_FACTOR: usize = 2;

/// More threads than this are a mistake in a setting, not a wish.
const MAX_WORKERS: usize = 1024;

/// Settings of a [`DataLoader`], with PyTorch's names and defaults. Nothing is
/// checked before [`build`](Builder::build).
pub struct Builder<D> {
    dataset: D,
    batch_size: usize,
    shuffle: bool,
    sampler: Option<Box<dyn Sampler>>,
    num_workers: usize,
    prefetch_factor: Option<usize>,
    drop_last: bool,
    pin_memory: PinMemory,
    pinned_budget: Option<usize>,
    collate: Option<Box<dyn Collate>>,
    timeout: Duration,
    seed: Option<u64>,
    in_order: bool,
    persistent_workers: bool,
}

impl<D: Dataset + 'static> Builder<D> {
    pub(super) fn new(dataset: D) -> Self {
        Builder {
            dataset,
            batch_size: 1,
            shuffle: false,
            sampler: None,
            num_workers: 0,
            prefetch_factor: None,
            drop_last: false,
            pin_memory: PinMemory::Off,
            pinned_budget: None,
            collate: None,
            timeout: Duration::ZERO,
            seed: None,
            in_order: true,
            persistent_workers: false,
        }
    }

    /// Samples per batch; 1 unless set. The last batch of an epoch has what is
    /// left.
    pub fn batch_size(mut self, samples: usize) -> Self {
        self.batch_size = samples;
        self
    }

    /// A new random order every epoch; off unless set.
    pub fn shuffle(mut self, shuffle: bool) -> Self {
        self.shuffle = shuffle;
        self
    }

    /// The order of the samples, instead of `shuffle`.
    pub fn sampler(mut self, sampler: impl Sampler + 'static) -> Self {
        self.sampler = Some(Box::new(sampler));
        self
    }

    /// Threads that make batches; 0 unless set: `next()` makes them itself. At
    /// most 1024.
    pub fn num_workers(mut self, threads: usize) -> Self {
        self.num_workers = threads;
        self
    }

    /// Batches read ahead per worker; 2 unless set.
    pub fn prefetch_factor(mut self, batches: usize) -> Self {
        self.prefetch_factor = Some(batches);
        self
    }

    /// Leave out the last batch of an epoch if it is short; off unless set.
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }

    /// What memory batches are made in: a `bool`, or a [`PinMemory`]; off
    /// unless set.
    pub fn pin_memory(mut self, pin_memory: impl Into<PinMemory>) -> Self {
        self.pin_memory = pin_memory.into();
        self
    }

    /// The most bytes to lock. Unless set, a quarter of the memory that the
    /// process can have; for [`PinMemory::PageLock`] never more than
    /// RLIMIT_MEMLOCK leaves. A batch that does not fit gets ordinary memory,
    /// and a warning.
    pub fn pinned_budget(mut self, bytes: usize) -> Self {
        self.pinned_budget = Some(bytes);
        self
    }

    /// A function that makes a batch of samples, instead of stacking them.
    pub fn collate(mut self, collate: impl Collate + 'static) -> Self {
        self.collate = Some(Box::new(collate));
        self
    }

    /// How long `next()` waits for a batch before it returns an error; for
    /// ever unless set (or zero). Needs workers.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The seed of the order: epoch `e` of seed `s` is PyTorch's `e`-th epoch
    /// after `torch.manual_seed(s)`, whatever the other settings. Unless set,
    /// one is picked: see [`DataLoader::seed`].
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Batches in their order (the default), or each as soon as it is made.
    pub fn in_order(mut self, in_order: bool) -> Self {
        self.in_order = in_order;
        self
    }

    /// Keep the worker threads from epoch to epoch; off unless set. They serve
    /// all live iterators of the loader.
    pub fn persistent_workers(mut self, persistent: bool) -> Self {
        self.persistent_workers = persistent;
        self
    }

    /// Checks the settings and makes the loader. Workers start with the first
    /// iterator.
    ///
    /// # Errors
    /// If settings contradict each other, or the base slots of page-locked
    /// memory do not fit the budget: the message says what to change.
    pub fn build(self) -> Result<DataLoader<D>> {
        self.check()?;
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(0u8));
        let order = match self.sampler {
            Some(sampler) => Order::Sampler(sampler),
            None if self.shuffle => Order::Shuffled,
            None => Order::Sequential,
        };
        let prefetch = self.prefetch_factor.unwrap_or(PREFETCH_FACTOR);
        let shared = Arc::new(Shared {
            dataset: self.dataset,
            settings: Settings {
                batch_size: self.batch_size,
                drop_last: self.drop_last,
                num_workers: self.num_workers,
                timeout: Some(self.timeout).filter(|timeout| !timeout.is_zero()),
                in_order: self.in_order,
                persistent_workers: self.persistent_workers,
                seed,
            },
            order,
            collate: self.collate,
            memory: Memory::new(self.pin_memory, self.pinned_budget),
            prefetch: AtomicUsize::new(prefetch),
            guess: Guess::default(),
            epochs: Mutex::new(Epochs { generator: Generator::manual_seed(seed), next: 0 }),
            batches: AtomicUsize::new(usize::MAX),
            live: Mutex::default(),
            made: Moment::now(),
        });
        shared.batches.store(shared.count_batches(), Ordering::Relaxed);
        shared.warn_of_settings();
        // A layout known beforehand: the first batch need not be guessed, and
        // memory that will not do is refused now.
        if let (None, Some(spec)) = (&shared.collate, shared.dataset.spec()) {
            let rows = shared.settings.batch_size.min(shared.dataset.len()).max(1);
            let layout = Layout::of_samples(spec, rows)?;
            shared.fit_budget(&layout)?;
            shared.guess.set(&layout);
        }
        Ok(DataLoader::new(shared))
    }

    fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Error::config(message));
        if self.batch_size == 0 {
            return refuse("batch_size should be a positive number, but got 0".into());
        }
        if self.num_workers > MAX_WORKERS {
            return refuse(format!(
                "num_workers should be at most {MAX_WORKERS}, but got {}",
                self.num_workers
            ));
        }
        if self.num_workers == 0 {
            let needs = |what: &str| {
                refuse(format!("{what} needs num_workers > 0; set num_workers, or leave it out"))
            };
            if self.prefetch_factor.is_some() {
                return needs("prefetch_factor");
            }
            if self.persistent_workers {
                return needs("persistent_workers");
            }
            if !self.timeout.is_zero() {
                return needs("timeout");
            }
        }
        if self.prefetch_factor == Some(0) {
            return refuse("prefetch_factor should be a positive number, but got 0".into());
        }
        if self.shuffle && self.sampler.is_some() {
            return refuse("sampler and shuffle exclude each other; leave one out".into());
        }
        if self.prefetch_factor.unwrap_or(1).checked_mul(self.num_workers).is_none() {
            return refuse("prefetch_factor x num_workers is more than usize can count".into());
        }
        Ok(())
    }
}

impl<D: Dataset> Shared<D> {
    fn warn_of_settings(&self) {
        if matches!(self.memory.policy(), PinMemory::On) {
            self.warnings().once("cuda", || {
                "pin_memory is on, but this version of pinfeed has no CUDA yet: batches are in ordinary memory and \
                 is_pinned() says false; use PinMemory::PageLock to keep them resident"
                    .to_owned()
            });
        }
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let workers = self.settings.num_workers;
        if workers > cpus {
            self.warnings().once("workers", || {
                format!(
                    "num_workers is {workers}, and this process may use {cpus} CPUs: more threads \
                     than CPUs help only where samples wait (disk, network)"
                )
            });
        }
    }
}

impl<D> fmt::Debug for Builder<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("batch_size", &self.batch_size)
            .field("num_workers", &self.num_workers)
            .field("pin_memory", &self.pin_memory)
            .finish_non_exhaustive()
    }
}
