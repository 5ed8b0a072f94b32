//! The loader: threads, tickets, order. `loader/README.md` explains how they
//! work together.

mod builder;
mod crew;
mod direct;
mod indices;
mod iter;
mod job;
mod make;
mod maker;
mod shared;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use self::crew::Crew;
use self::indices::IndexBatches;
use self::shared::{Order, Shared};
use crate::dataset::Dataset;
use crate::error::{Error, Kind, Result};
use crate::memory::{MemoryStats, PinMemory};
use crate::sampler::{Generator, Indices, RandomSampler, Sampler, SequentialSampler};

pub use builder::Builder;
pub use iter::Iter;

/// Loads a data set batch by batch: PyTorch's `DataLoader`.
///
/// ```
/// use pinfeed::{DataLoader, Tensor};
///
/// let squares = pinfeed::from_fn(10, |i| (i as f32, (i * i) as i64));
/// let loader = DataLoader::builder(squares).batch_size(4).num_workers(2).build()?;
/// for batch in &loader {
///     let (x, y): (Tensor, Tensor) = batch?.try_into()?;
///     println!("{x} {y}");
/// }
/// # Ok::<(), pinfeed::Error>(())
/// ```
pub struct DataLoader<D: Dataset + 'static> {
    shared: Arc<Shared<D>>,
    /// Workers kept from epoch to epoch, if asked for.
    persistent: Mutex<Option<Arc<Crew>>>,
}

impl<D: Dataset + 'static> DataLoader<D> {
    /// A loader of `dataset`, to be set up.
    pub fn builder(dataset: D) -> Builder<D> {
        Builder::new(dataset)
    }

    fn new(shared: Arc<Shared<D>>) -> Self {
        DataLoader { shared, persistent: Mutex::new(None) }
    }

    /// Begins an epoch. Iterators are independent of each other; the e-th one
    /// made has the e-th order, broken ones counted.
    ///
    /// What keeps the epoch from beginning is its first and only item.
    pub fn iter(&self) -> Iter<D> {
        self.begin().unwrap_or_else(|error| Iter::failing(Arc::clone(&self.shared), error))
    }

    fn begin(&self) -> Result<Iter<D>> {
        let shared = &self.shared;
        if !shared.made.same_process() {
            return Err(iter::forked("loader"));
        }
        let len = catch_unwind(AssertUnwindSafe(|| shared.dataset.len()))
            .map_err(|panic| Error::from_panic(Kind::Dataset, panic))?;
        let settings = &shared.settings;
        let (epoch, source, declared) = {
            let mut epochs = shared.epochs.lock().unwrap_or_else(PoisonError::into_inner);
            let epoch = epochs.next;
            epochs.next += 1;
            // PyTorch draws its workers' base seed first, in every epoch.
            epochs.generator.random_i64();
            let (source, declared) = shared.order.indices(len, &mut epochs.generator)?;
            (epoch, source, declared)
        };
        let crew = if settings.num_workers == 0 { None } else { Some(self.crew()?) };
        let (size, drop_last) = (settings.batch_size, settings.drop_last);
        let batches = IndexBatches::new(source, declared, size, drop_last, len);
        let count = IndexBatches::count(declared, size, drop_last);
        shared.batches.store(count, Ordering::Relaxed);
        shared.live.lock().unwrap_or_else(PoisonError::into_inner).push(epoch);
        shared.set_base();
        shared.memory.trim();
        Ok(Iter::new(Arc::clone(shared), epoch, batches, count, crew))
    }

    fn crew(&self) -> Result<Arc<Crew>> {
        if !self.shared.settings.persistent_workers {
            return Crew::start(&self.shared);
        }
        let mut persistent = self.persistent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(crew) = &*persistent {
            return Ok(Arc::clone(crew));
        }
        let crew = Crew::start(&self.shared)?;
        *persistent = Some(Arc::clone(&crew));
        Ok(crew)
    }

    /// The number of batches of an epoch.
    pub fn len(&self) -> usize {
        self.shared.count_batches()
    }

    /// Has an epoch no batches?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data set.
    pub fn dataset(&self) -> &D {
        &self.shared.dataset
    }

    /// The seed of the order, given or picked.
    pub fn seed(&self) -> u64 {
        self.shared.settings.seed
    }

    /// What memory batches are made in.
    pub fn pin_memory(&self) -> &PinMemory {
        self.shared.memory.policy()
    }

    /// Batches read ahead per worker; less than was set if the budget asked
    /// for it.
    pub fn prefetch_factor(&self) -> usize {
        self.shared.prefetch.load(Ordering::Relaxed)
    }

    /// What the loader had to say that is no error, each once.
    pub fn warnings(&self) -> Vec<String> {
        self.shared.warnings().all()
    }

    /// What the loader's memory comes to now.
    pub fn memory(&self) -> MemoryStats {
        self.shared.memory.stats()
    }

    /// Gives back the memory of slots that nobody uses. Without it they are
    /// kept for the next epoch, as many as the last one needed.
    pub fn release_memory(&self) {
        self.shared.memory.release();
    }
}

impl Order {
    /// One epoch's indices, and how many there are.
    fn indices(&self, len: usize, generator: &mut Generator) -> Result<(Box<dyn Indices>, usize)> {
        let sampled = catch_unwind(AssertUnwindSafe(|| match self {
            Order::Sequential => (SequentialSampler::new(len).indices(generator), len),
            Order::Shuffled => (RandomSampler::new(len).indices(generator), len),
            Order::Sampler(sampler) => (sampler.indices(generator), sampler.len()),
        }));
        match sampled {
            Ok((Ok(indices), declared)) => Ok((indices, declared)),
            Ok((Err(error), _)) => Err(Error::from_user(Kind::Sampler, error)),
            Err(panic) => Err(Error::from_panic(Kind::Sampler, panic)),
        }
    }
}

impl<D: Dataset + 'static> IntoIterator for &DataLoader<D> {
    type Item = Result<crate::Batch>;
    type IntoIter = Iter<D>;

    fn into_iter(self) -> Iter<D> {
        self.iter()
    }
}

impl<D: Dataset + 'static> IntoIterator for DataLoader<D> {
    type Item = Result<crate::Batch>;
    type IntoIter = Iter<D>;

    fn into_iter(self) -> Iter<D> {
        self.iter()
    }
}

impl<D: Dataset + 'static> Drop for DataLoader<D> {
    fn drop(&mut self) {
        if !self.shared.made.same_process() {
            // The threads, and the locks they held, are the parent's.
            let persistent = self.persistent.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(persistent.take());
        }
    }
}

impl<D: Dataset + 'static> fmt::Debug for DataLoader<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.shared.settings;
        f.debug_struct("DataLoader")
            .field("batch_size", &settings.batch_size)
            .field("num_workers", &settings.num_workers)
            .field("pin_memory", self.pin_memory())
            .field("seed", &settings.seed)
            .finish_non_exhaustive()
    }
}
