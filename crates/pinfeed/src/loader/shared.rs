//! What a loader, its iterators and its workers share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinfeed_mem::{Bytes, Moment, PARTS, round_to_pages};

use crate::collate::{Collate, Layout};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::loader::indices::IndexBatches;
use crate::memory::Memory;
use crate::sample::Spec;
use crate::sampler::{Generator, Sampler};
use crate::warnings::Warnings;

/// The builder's settings, checked.
pub(crate) struct Settings {
    pub(crate) batch_size: usize,
    pub(crate) drop_last: bool,
    pub(crate) num_workers: usize,
    pub(crate) timeout: Option<Duration>,
    pub(crate) in_order: bool,
    pub(crate) persistent_workers: bool,
    pub(crate) seed: u64,
}

/// Everything that outlives an iterator.
pub(crate) struct Shared<D> {
    pub(crate) dataset: D,
    pub(crate) settings: Settings,
    pub(crate) order: Order,
    pub(crate) collate: Option<Box<dyn Collate>>,
    pub(crate) memory: Memory,
    /// Tickets per worker. Lowered where the base slots would not fit.
    pub(crate) prefetch: AtomicUsize,
    /// The layout of the last batch of any epoch: the guess for the next.
    pub(crate) guess: Guess,
    pub(crate) epochs: Mutex<Epochs>,
    /// Batches of an epoch, as counted when the last one began: asked of the data
    /// set and the sampler then, and of nobody later.
    pub(crate) batches: AtomicUsize,
    /// The epochs that have a live iterator.
    pub(crate) live: Mutex<Vec<u64>>,
    pub(crate) made: Moment,
}

/// Which samples, in what order.
pub(crate) enum Order {
    /// As many as the data set has when the epoch begins.
    Sequential,
    Shuffled,
    Sampler(Box<dyn Sampler>),
}

/// Where the next epoch's random numbers come from.
pub(crate) struct Epochs {
    pub(crate) generator: Generator,
    pub(crate) next: u64,
}

impl<D: Dataset> Shared<D> {
    /// The most tickets that are issued and not handed over.
    pub(crate) fn window(&self) -> usize {
        self.window_for(self.prefetch.load(Ordering::Relaxed))
    }

    fn window_for(&self, prefetch: usize) -> usize {
        prefetch.saturating_mul(self.settings.num_workers).max(1)
    }

    /// Slots that a live iterator needs: its tickets, and the batch that the
    /// user has in hand; no more than it has batches.
    pub(crate) fn base_slots(&self) -> usize {
        self.slots_for(self.prefetch.load(Ordering::Relaxed))
    }

    fn slots_for(&self, prefetch: usize) -> usize {
        let workers = self.settings.num_workers;
        let slots = if workers == 0 { 1 } else { self.window_for(prefetch).saturating_add(1) };
        slots.min(self.batches.load(Ordering::Relaxed)).max(1)
    }

    /// The number of batches of an epoch that begins now.
    pub(crate) fn count_batches(&self) -> usize {
        let samples = match &self.order {
            Order::Sampler(sampler) => sampler.len(),
            Order::Sequential | Order::Shuffled => self.dataset.len(),
        };
        IndexBatches::count(samples, self.settings.batch_size, self.settings.drop_last)
    }

    pub(crate) fn warnings(&self) -> &Warnings {
        self.memory.warnings()
    }

    /// Tells the pools how many slots all live iterators need.
    pub(crate) fn set_base(&self) {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.memory.set_base(self.base_slots().saturating_mul(live.max(1)));
    }

    /// Lowers the read-ahead until the base slots of this layout fit the
    /// budget.
    ///
    /// # Errors
    /// If they do not fit with the least read-ahead, which is left as it was.
    pub(crate) fn fit_budget(&self, layout: &Layout) -> Result<()> {
        if !self.memory.locks() {
            return Ok(());
        }
        let slot_bytes = PARTS
            .iter()
            .map(|&part| round_to_pages(layout.plan.bytes(part)))
            .fold(0usize, usize::saturating_add);
        let budget = self.memory.budget();
        if budget.check(self.base_slots(), slot_bytes).is_ok() {
            return Ok(());
        }
        // Slots of some bytes, or they would fit.
        let workers = self.settings.num_workers;
        let most = (budget.limit() / slot_bytes).saturating_sub(1).checked_div(workers);
        let after = most.unwrap_or(1).max(1);
        budget.check(self.slots_for(after), slot_bytes)?;
        let before = self.prefetch.swap(after, Ordering::Relaxed);
        self.set_base();
        self.warnings().once("prefetch", || {
            format!(
                "prefetch_factor lowered from {before} to {after}: {} slots of {} are what the \
                 budget for page-locked memory ({}) holds ({}), or take a smaller batch_size",
                self.base_slots(),
                Bytes(slot_bytes as u64),
                Bytes(budget.limit() as u64),
                budget.remedy()
            )
        });
        Ok(())
    }

    /// The first layout is known, learned while loading: nothing is refused any
    /// more. What does not fit gets ordinary memory, and a warning then.
    pub(crate) fn learned(&self, layout: &Layout) {
        let _ = self.fit_budget(layout);
    }
}

/// A layout that will do for the next batch, unless its samples say otherwise.
#[derive(Debug, Default)]
pub(crate) struct Guess(Mutex<Option<Arc<Layout>>>);

impl Guess {
    /// The guess, for a batch of `rows` samples.
    pub(crate) fn get(&self, rows: usize) -> Result<Option<Arc<Layout>>> {
        let guess = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        guess.map(|layout| layout.with_rows(rows)).transpose()
    }

    /// A batch turned out to be like this: so will the next.
    pub(crate) fn set(&self, layout: &Arc<Layout>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(layout));
    }

    /// The first sample that was made has this spec; another thread's may have
    /// been first. `learned` is told of the layout, once.
    pub(crate) fn first(
        &self,
        spec: &Spec,
        rows: usize,
        learned: impl FnOnce(&Layout),
    ) -> Result<Arc<Layout>> {
        let mut guess = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(layout) = &*guess {
            return layout.with_rows(rows);
        }
        let layout = Layout::of_samples(spec.clone(), rows)?;
        learned(&layout);
        *guess = Some(Arc::clone(&layout));
        Ok(layout)
    }
}
