//! The figures: what the JSON says, and the table and the verdict show.
//!
//! `README.md` beside this folder says what each means.

use std::thread;

use pinfeed::{PinMemory, Unpinned};
use serde::{Serialize, Serializer};

use crate::args::BenchArgs;
use crate::data::Data;
use crate::measure::{Epochs, Image, Loader, SEED, Seen};
use crate::verdict;
use crate::verify::Verified;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) data: DataInfo,
    pub(crate) settings: Settings,
    pub(crate) machine: Machine,
    #[serde(serialize_with = "six_digits")]
    pub(crate) floor_s: f64,
    pub(crate) results: Vec<Outcome>,
    pub(crate) verdict: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct DataInfo {
    pub(crate) kind: &'static str,
    pub(crate) path: Option<String>,
    pub(crate) samples: usize,
    pub(crate) classes: usize,
    pub(crate) sample_shape: Option<Box<[usize]>>,
    pub(crate) sample_dtype: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Settings {
    pub(crate) batch_size: usize,
    pub(crate) num_workers: usize,
    pub(crate) work_ms: u64,
    pub(crate) runs: usize,
    pub(crate) device: &'static str,
    pub(crate) shuffle: bool,
    pub(crate) seed: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpus: usize,
    pub(crate) gpu: Option<String>,
}

/// What one setting of `pin_memory` gave.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) pin_memory: String,
    pub(crate) policy: String,
    pub(crate) is_pinned: bool,
    pub(crate) is_os_locked: bool,
    pub(crate) device: &'static str,
    #[serde(serialize_with = "each_six_digits")]
    pub(crate) epochs_s: Vec<f64>,
    #[serde(serialize_with = "six_digits")]
    pub(crate) mean_s: f64,
    #[serde(serialize_with = "six_digits")]
    pub(crate) work_s: f64,
    #[serde(serialize_with = "some_six_digits")]
    pub(crate) overhead_percent: Option<f64>,
    #[serde(serialize_with = "some_six_digits")]
    pub(crate) first_epoch_overhead_percent: Option<f64>,
    pub(crate) samples: usize,
    #[serde(serialize_with = "six_digits")]
    pub(crate) samples_per_s: f64,
    #[serde(serialize_with = "six_digits")]
    pub(crate) first_batch_ms: f64,
    pub(crate) pinned_bytes: usize,
    pub(crate) locked_bytes: usize,
    pub(crate) slots: usize,
    pub(crate) warnings: Vec<String>,
    pub(crate) channel_mean: Option<Vec<f64>>,
    pub(crate) label_counts: Option<Vec<u64>>,
    /// An epoch without work, in seconds: run only if loading did not hide.
    #[serde(serialize_with = "some_six_digits")]
    pub(crate) loading_s: Option<f64>,
    /// In detail, for the verdict.
    #[serde(skip)]
    pub(crate) epochs: Epochs,
    #[serde(skip)]
    pub(crate) why_unpinned: Option<Unpinned>,
}

impl Outcome {
    pub(crate) fn new(
        setting: &PinMemory,
        args: &BenchArgs,
        loader: &Loader,
        epochs: Epochs,
        seen: &Seen,
    ) -> Self {
        let memory = loader.memory();
        let pools = [memory.slab, memory.small];
        let mean_s = epochs.mean(|epoch| epoch.took);
        let samples = loader.dataset().len();
        Outcome {
            pin_memory: setting.to_string(),
            policy: seen.memory(),
            is_pinned: seen.all_pinned(),
            is_os_locked: seen.all_os_locked(),
            device: args.device.name(),
            epochs_s: epochs.all().iter().map(|epoch| epoch.took.as_secs_f64()).collect(),
            mean_s,
            work_s: epochs.mean(|epoch| epoch.worked),
            overhead_percent: epochs.overhead_percent(),
            first_epoch_overhead_percent: epochs.first().overhead_percent(),
            samples,
            samples_per_s: samples as f64 / mean_s,
            first_batch_ms: epochs.median(|epoch| epoch.first_batch.as_secs_f64() * 1e3),
            // The driver's lock is not there yet.
            pinned_bytes: 0,
            locked_bytes: pools.iter().filter(|pool| pool.locks).map(|pool| pool.reserved).sum(),
            slots: pools.map(|pool| pool.slots).into_iter().max().unwrap_or(0),
            warnings: loader.warnings(),
            channel_mean: None,
            label_counts: None,
            loading_s: None,
            epochs,
            why_unpinned: seen.why_unpinned(),
        }
    }

    pub(crate) fn add_verified(&mut self, verified: Verified) {
        self.channel_mean = Some(verified.channel_mean);
        self.label_counts = Some(verified.label_counts);
    }
}

impl Machine {
    pub(crate) fn here() -> Self {
        Machine { cpus: thread::available_parallelism().map_or(1, usize::from), gpu: None }
    }
}

impl Settings {
    pub(crate) fn of(args: &BenchArgs) -> Self {
        Settings {
            batch_size: args.batch_size,
            num_workers: args.num_workers,
            work_ms: args.work.as_millis() as u64,
            runs: args.runs,
            device: args.device.name(),
            shuffle: true,
            seed: SEED,
        }
    }

    /// The work of one epoch, in seconds.
    pub(crate) fn floor_s(&self, samples: usize) -> f64 {
        samples.div_ceil(self.batch_size) as f64 * self.work_ms as f64 / 1e3
    }
}

impl Report {
    pub(crate) fn new(
        args: &BenchArgs,
        data: &Data,
        image: Option<&Image>,
        results: Vec<Outcome>,
    ) -> Self {
        let (settings, machine) = (Settings::of(args), Machine::here());
        let verdict = verdict::verdict(&settings, &machine, &results);
        Report {
            data: DataInfo {
                kind: data.kind,
                path: data.path.as_ref().map(|path| path.display().to_string()),
                samples: data.samples(),
                classes: data.classes(),
                sample_shape: image.and_then(|image| image.shape.clone()),
                sample_dtype: image.map(|image| image.dtype.to_string()),
            },
            floor_s: settings.floor_s(data.samples()),
            settings,
            machine,
            results,
            verdict,
        }
    }
}

/// Microseconds, and millionths of the other units: the digits behind are
/// noise.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn six_digits<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    rounded(*value).serialize(to)
}

fn some_six_digits<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    value.map(rounded).serialize(to)
}

fn each_six_digits<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(values.iter().map(|value| rounded(*value)))
}
