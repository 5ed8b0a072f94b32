//! The arguments, and what they may be.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use pinfeed::PinMemory;

/// The loader's own bound, refused here before any data is opened.
const MAX_WORKERS: u64 = 1024;

/// An hour: more is a slip of the finger.
const MAX_WORK_MS: u64 = 3_600_000;

/// More epochs than anybody waits for.
const MAX_RUNS: u64 = 1_000_000;

/// More samples than memory holds, in a batch or made up.
const MAX_SAMPLES: u64 = 1_000_000_000;

#[derive(Debug, Parser)]
#[command(name = "pinfeed", version, about = "A data loader that keeps a GPU fed")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(BenchArgs),
}

/// What does loading cost beside the work? With pinned memory and without
///
/// Loads images as f32 tensors with their labels, shuffled, and works on each
/// batch for a given time, as training does: by default the CIFAR-10 benchmark
/// of batches of 1024, 6 workers and 0.1 s of work. If loading hides behind
/// the work, an epoch takes as long as the work alone.
#[derive(Args, Debug)]
// An option given twice: the later one holds, as scripts that add options like.
#[command(args_override_self = true)]
#[command(after_help = "\
Examples:
  pinfeed bench
  pinfeed bench --data images/train --num-workers 2 --work-ms 50
  pinfeed bench --data synthetic:10000 --pin-memory lock --json -")]
pub(crate) struct BenchArgs {
    /// A folder of class folders of images, or a .tar or .tar.gz of one; or
    /// `synthetic`, or `synthetic:N` for N images: noise of CIFAR-10's shape
    /// [default: images in ./data, else `synthetic`]
    #[arg(long, value_name = "PATH|synthetic", value_parser = OsStringValueParser::new().try_map(data))]
    pub(crate) data: Option<DataArg>,

    /// Samples a batch
    #[arg(long, value_name = "N", default_value = "1024", value_parser = batch_size, allow_negative_numbers = true)]
    pub(crate) batch_size: usize,

    /// Threads that load; 0: nothing is loaded during the work
    #[arg(long, value_name = "N", default_value = "6", value_parser = workers, allow_negative_numbers = true)]
    pub(crate) num_workers: usize,

    /// Milliseconds of work a batch (a sleep: a GPU's work leaves the CPU free)
    #[arg(long = "work-ms", value_name = "MS", default_value = "100", value_parser = work, allow_negative_numbers = true)]
    pub(crate) work: Duration,

    /// Epochs for each setting of pin-memory
    #[arg(long, value_name = "N", default_value = "10", value_parser = runs, allow_negative_numbers = true)]
    pub(crate) runs: usize,

    /// The memory of the batches: ordinary (off), page-locked by the CUDA
    /// driver (on), locked by the system (lock); both: off, then on
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = PinArg::Both)]
    pub(crate) pin_memory: PinArg,

    /// Where batches go: `cpu`, or `auto`, which is `cpu` in this version
    #[arg(long, default_value = "auto", value_parser = device)]
    pub(crate) device: Device,

    /// After the epochs, load one more that is not timed, and compare labels
    /// and count of its samples with the data's
    #[arg(long)]
    pub(crate) verify: bool,

    /// Write the figures as JSON to FILE, or with `-` to stdout (the table
    /// then goes to stderr)
    #[arg(long, value_name = "FILE|-", value_parser = OsStringValueParser::new().try_map(json))]
    pub(crate) json: Option<JsonArg>,
}

/// `--data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DataArg {
    Path(PathBuf),
    /// So many made-up images.
    Synthetic(usize),
}

impl DataArg {
    /// Images in CIFAR-10's training set.
    pub(crate) const CIFAR_10: usize = 50_000;
}

/// `--json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonArg {
    Stdout,
    File(PathBuf),
}

/// `--device`, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    Cpu,
}

impl Device {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
        }
    }
}

/// `--pin-memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PinArg {
    Off,
    On,
    Lock,
    Both,
}

impl PinArg {
    /// The settings to measure, in order.
    pub(crate) fn settings(self) -> Vec<PinMemory> {
        match self {
            PinArg::Off => vec![PinMemory::Off],
            PinArg::On => vec![PinMemory::On],
            PinArg::Lock => vec![PinMemory::PageLock],
            PinArg::Both => vec![PinMemory::Off, PinMemory::On],
        }
    }
}

fn data(value: OsString) -> Result<DataArg, String> {
    if value.is_empty() {
        return Err("give a path, or `synthetic`".into());
    }
    let synthetic = value.to_str().and_then(|text| text.strip_prefix("synthetic"));
    match synthetic {
        Some("") => Ok(DataArg::Synthetic(DataArg::CIFAR_10)),
        Some(rest) if rest.starts_with(':') => {
            let count = whole(&rest[1..], 1, MAX_SAMPLES)
                .map_err(|e| format!("{e} behind the colon, as in `synthetic:10000`"))?;
            Ok(DataArg::Synthetic(count as usize))
        }
        _ => Ok(DataArg::Path(value.into())),
    }
}

fn json(value: OsString) -> Result<JsonArg, String> {
    if value.is_empty() {
        return Err("give a file, or `-` for stdout".into());
    }
    Ok(if value == "-" { JsonArg::Stdout } else { JsonArg::File(value.into()) })
}

fn batch_size(text: &str) -> Result<usize, String> {
    whole(text, 1, MAX_SAMPLES).map(|n| n as usize)
}

fn workers(text: &str) -> Result<usize, String> {
    whole(text, 0, MAX_WORKERS).map(|n| n as usize)
}

fn work(text: &str) -> Result<Duration, String> {
    whole(text, 0, MAX_WORK_MS).map(Duration::from_millis)
}

fn runs(text: &str) -> Result<usize, String> {
    whole(text, 1, MAX_RUNS).map(|n| n as usize)
}

/// A whole number `from..=to`; an error that says what to give instead.
fn whole(text: &str, from: u64, to: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(n) if (from..=to).contains(&n) => Ok(n),
        _ => Err(format!("give a whole number from {from} to {to}")),
    }
}

fn device(text: &str) -> Result<Device, String> {
    match text {
        "auto" | "cpu" => Ok(Device::Cpu),
        cuda if cuda.starts_with("cuda") => {
            Err("it is not there, this version of pinfeed has no CUDA; give `auto` or `cpu`".into())
        }
        _ => Err("there is no such device; give `auto` or `cpu`".into()),
    }
}
