//! Epochs, timed.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use pinfeed::{Batch, DType, DataLoader, Dataset, FieldKind, PinMemory, Unpinned};

use crate::args::BenchArgs;
use crate::progress::Progress;

pub(crate) type Loader = DataLoader<Arc<dyn Dataset>>;

/// The order is a new one every epoch, as for training, and the same for every
/// setting.
pub(crate) const SEED: u64 = 0;

pub(crate) fn loader(
    dataset: &Arc<dyn Dataset>,
    pin_memory: PinMemory,
    args: &BenchArgs,
) -> pinfeed::Result<Loader> {
    DataLoader::builder(Arc::clone(dataset))
        .batch_size(args.batch_size)
        .num_workers(args.num_workers)
        .shuffle(true)
        .seed(SEED)
        .pin_memory(pin_memory)
        .build()
}

/// The times of one epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    /// From before the iterator was made to after the last batch was dropped.
    pub(crate) took: Duration,
    /// Of that, the work on the batches.
    pub(crate) worked: Duration,
    /// From the start to the first batch.
    pub(crate) first_batch: Duration,
}

impl Epoch {
    /// What it took beyond the work, in per cent of the work; `None` if there
    /// was no work.
    pub(crate) fn overhead_percent(&self) -> Option<f64> {
        let worked = self.worked.as_secs_f64();
        (worked > 0.0).then(|| (self.took.as_secs_f64() - worked) / worked * 100.0)
    }
}

/// The times of all epochs: at least one.
#[derive(Clone, Debug)]
pub(crate) struct Epochs(Vec<Epoch>);

#[cfg(test)]
impl From<Vec<Epoch>> for Epochs {
    fn from(epochs: Vec<Epoch>) -> Self {
        Epochs(epochs)
    }
}

impl Epochs {
    /// Runs so many epochs with so much work a batch.
    pub(crate) fn run(
        loader: &Loader,
        work: Duration,
        runs: usize,
        progress: &Progress,
        seen: &mut Seen,
    ) -> Result<Self> {
        let mut epochs = Vec::new();
        for run in 1..=runs {
            let setting = loader.pin_memory();
            progress.now(format_args!("pin_memory {setting}, epoch {run} of {runs}"));
            epochs.push(epoch(loader, work, progress, seen)?);
        }
        Ok(Epochs(epochs))
    }

    pub(crate) fn all(&self) -> &[Epoch] {
        &self.0
    }

    pub(crate) fn first(&self) -> &Epoch {
        &self.0[0]
    }

    /// All but the first, which also has memory made (and page-locked) and
    /// files read for the first time. The first, if it is the only one.
    pub(crate) fn steady(&self) -> &[Epoch] {
        if self.0.len() > 1 { &self.0[1..] } else { &self.0 }
    }

    /// The median of a figure of the steady epochs.
    pub(crate) fn median(&self, figure: impl Fn(&Epoch) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.steady().iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        let middle = figures.len() / 2;
        if figures.len() % 2 == 1 {
            figures[middle]
        } else {
            (figures[middle - 1] + figures[middle]) / 2.0
        }
    }

    /// The mean of a time over all epochs, in seconds.
    pub(crate) fn mean(&self, time: impl Fn(&Epoch) -> Duration) -> f64 {
        let sum: Duration = self.0.iter().map(time).sum();
        sum.as_secs_f64() / self.0.len() as f64
    }

    /// [`Epoch::overhead_percent`], the steady epochs' median.
    pub(crate) fn overhead_percent(&self) -> Option<f64> {
        self.first().overhead_percent()?;
        Some(self.median(|epoch| epoch.overhead_percent().unwrap_or_default()))
    }
}

/// An epoch with nothing but loading, in seconds.
pub(crate) fn loading_alone(loader: &Loader, progress: &Progress) -> Result<f64> {
    progress.now(format_args!("pin_memory {}, loading alone", loader.pin_memory()));
    let epoch = epoch(loader, Duration::ZERO, progress, &mut Seen::default())?;
    Ok(epoch.took.as_secs_f64())
}

fn epoch(loader: &Loader, work: Duration, progress: &Progress, seen: &mut Seen) -> Result<Epoch> {
    let mut first_batch = None;
    let mut worked = Duration::ZERO;
    let mut samples = 0;
    let start = Instant::now();
    for batch in loader {
        let batch = batch?;
        first_batch.get_or_insert_with(|| start.elapsed());
        samples += batch.len();
        seen.look_at(&batch);
        worked += work_on(work, progress);
    }
    let took = start.elapsed();
    let expected = loader.dataset().len();
    if samples != expected {
        bail!("an epoch had {samples} samples of {expected}: this is a bug of pinfeed");
    }
    Ok(Epoch { took, worked, first_batch: first_batch.unwrap_or(took) })
}

/// Works on a batch for so long; returns how long it really was. Drawing the
/// bar is work too: the loader has nothing to do with it.
fn work_on(work: Duration, progress: &Progress) -> Duration {
    let start = Instant::now();
    progress.step();
    if work.is_zero() {
        return Duration::ZERO;
    }
    thread::sleep(work);
    start.elapsed()
}

/// What batches were like.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    batches: usize,
    pinned: usize,
    os_locked: usize,
    image: Option<Image>,
    why_unpinned: Option<Unpinned>,
}

/// Their images, without the batch dimension.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) dtype: DType,
    /// `None` if it varies.
    pub(crate) shape: Option<Box<[usize]>>,
}

impl Seen {
    fn look_at(&mut self, batch: &Batch) {
        self.batches += 1;
        self.pinned += usize::from(batch.is_pinned());
        self.os_locked += usize::from(batch.is_os_locked());
        if !batch.is_pinned() && self.why_unpinned.is_none() {
            self.why_unpinned = batch.pinning().rest.first().map(|(_, _, why)| *why);
        }
        if let Some(FieldKind::Tensor { dtype, shape }) = batch.fields().first().map(|f| f.kind()) {
            match &mut self.image {
                None => self.image = Some(Image { dtype, shape: Some(shape) }),
                Some(image) if image.shape.as_ref() != Some(&shape) => image.shape = None,
                Some(_) => {}
            }
        }
    }

    pub(crate) fn image(&self) -> Option<&Image> {
        self.image.as_ref()
    }

    /// Why the first batch that was not pinned was not.
    pub(crate) fn why_unpinned(&self) -> Option<Unpinned> {
        self.why_unpinned
    }

    /// Was every batch page-locked by the CUDA driver?
    pub(crate) fn all_pinned(&self) -> bool {
        self.batches > 0 && self.pinned == self.batches
    }

    /// Was every batch locked by the operating system?
    pub(crate) fn all_os_locked(&self) -> bool {
        self.batches > 0 && self.os_locked == self.batches
    }

    /// What the setting came to: the batches say it.
    pub(crate) fn memory(&self) -> String {
        if self.all_pinned() {
            return "page-locked by the CUDA driver".to_owned();
        }
        if self.all_os_locked() {
            return "locked by the system (mlock)".to_owned();
        }
        let locked = self.pinned.max(self.os_locked);
        if locked > 0 {
            let batches = self.batches;
            return format!("memory locked for {locked} of {batches} batches only");
        }
        match self.why_unpinned {
            None | Some(Unpinned::NotAsked) => "ordinary memory".to_owned(),
            Some(Unpinned::NoCuda) => "ordinary memory (no CUDA yet)".to_owned(),
            Some(Unpinned::OverBudget) => "ordinary memory (no room to lock it)".to_owned(),
            Some(why) => format!("ordinary memory ({why})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(took: u64, worked: u64) -> Epoch {
        let ms = Duration::from_millis;
        Epoch { took: ms(took), worked: ms(worked), first_batch: ms(1) }
    }

    #[test]
    fn the_first_epoch_is_apart_if_there_are_others() {
        let epochs = Epochs(vec![epoch(300, 100), epoch(110, 100), epoch(130, 100)]);
        assert_eq!(epochs.overhead_percent().map(f64::round), Some(20.0));
        assert_eq!(epochs.first().overhead_percent().map(f64::round), Some(200.0));
        assert_eq!((epochs.mean(|e| e.took) * 1e6).round(), 180_000.0);

        let one = Epochs(vec![epoch(300, 100)]);
        assert_eq!(one.overhead_percent().map(f64::round), Some(200.0));
    }

    #[test]
    fn without_work_there_is_nothing_to_compare_with() {
        assert_eq!(Epochs(vec![epoch(300, 0), epoch(300, 0)]).overhead_percent(), None);
    }
}
