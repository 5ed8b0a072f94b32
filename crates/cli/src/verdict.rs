//! One sentence: where the time went, and what would help.

use crate::measure::Epochs;
use crate::report::{Machine, Outcome, Settings};
use crate::table::{bytes, percent, seconds};

/// Up to so many per cent of the work, loading is hidden behind it.
const HIDDEN: f64 = 5.0;

/// Epochs differ by so many per cent for no reason.
const NOISE: f64 = 1.0;

pub(crate) fn verdict(settings: &Settings, machine: &Machine, results: &[Outcome]) -> String {
    let Some(outcome) = results.first() else { return String::new() };
    let loading = loading(settings, machine, outcome);
    let memory = match results {
        [off, on, ..] => Some(compared(off, on)),
        [one] => locked(one),
        [] => None,
    };
    match memory {
        Some(memory) => format!("{loading}; {memory}."),
        None => format!("{loading}."),
    }
}

/// Where an epoch's time went, in seconds: the steady epochs' medians.
struct Split {
    epoch: f64,
    work: f64,
    /// Until the first batch.
    first: f64,
    /// For all other batches.
    waits: f64,
    batches: f64,
}

impl Split {
    fn of(epochs: &Epochs, batches: usize) -> Self {
        let took = |e: &crate::measure::Epoch| e.took.as_secs_f64();
        Split {
            epoch: epochs.median(took),
            work: epochs.median(|e| e.worked.as_secs_f64()),
            first: epochs.median(|e| e.first_batch.as_secs_f64()),
            waits: epochs.median(|e| took(e) - (e.worked + e.first_batch).as_secs_f64()),
            batches: batches as f64,
        }
    }

    fn of_work(&self, time: f64) -> f64 {
        time / self.work * 100.0
    }

    /// The time from one batch to the next.
    fn interval(&self) -> f64 {
        let work = self.work / self.batches;
        work + self.waits.max(0.0) / (self.batches - 1.0).max(1.0)
    }
}

fn loading(settings: &Settings, machine: &Machine, outcome: &Outcome) -> String {
    let split = Split::of(&outcome.epochs, outcome.batches);
    let Some(over) = outcome.overhead_percent else {
        return format!(
            "There is no work to hide behind (--work-ms 0): loading alone takes {} an epoch, {} a \
             batch",
            seconds(split.epoch),
            seconds(split.epoch / split.batches),
        );
    };
    let (over_text, work) = (percent(over), seconds(split.work));
    if over <= HIDDEN {
        let how = match settings.num_workers {
            0 => "Loading costs little even without workers",
            _ => "Loading hides behind the work",
        };
        return format!("{how}: {over_text} over the {work} of work in an epoch");
    }
    if settings.num_workers == 0 {
        return format!(
            "Nothing is loaded during the work, because there are no workers: {over_text} over the \
             {work} of work in an epoch, which --num-workers 1 or more would load meanwhile"
        );
    }
    if split.of_work(split.waits) <= HIDDEN {
        return format!(
            "Loading hides behind the work but for the first batch of an epoch, which takes {}: \
             {over_text} over the {work} of work in an epoch; smaller batches would come sooner",
            seconds(split.first),
        );
    }
    format!(
        "Loading takes longer than the work: a batch comes every {} and the work on it takes {}, \
         so an epoch takes {}, {over_text} over the {work} of work in it; {}",
        seconds(split.interval()),
        seconds(split.work / split.batches),
        seconds(split.epoch),
        remedy(settings.num_workers, machine.cpus),
    )
}

fn remedy(workers: usize, cpus: usize) -> String {
    if workers < cpus {
        return format!(
            "more workers ({workers} now, and {cpus} CPUs) or data that is faster to read and \
             decode would help"
        );
    }
    "more CPUs or data that is faster to read and decode would help, more workers only if they \
     wait for a disk"
        .to_owned()
}

/// What the second setting changed.
fn compared(off: &Outcome, on: &Outcome) -> String {
    let took = |outcome: &Outcome| outcome.epochs.median(|epoch| epoch.took.as_secs_f64());
    let change = (took(on) / took(off) - 1.0) * 100.0;
    let noise = NOISE.max(spread(&off.epochs)).max(spread(&on.epochs));
    let difference = if change.abs() <= noise {
        "pin_memory made no difference".to_owned()
    } else {
        let direction = if change > 0.0 { "longer" } else { "shorter" };
        format!("with pin_memory an epoch took {} {direction}", percent(change.abs()))
    };
    match (on.is_pinned, change.abs() <= noise) {
        (true, _) => difference,
        (false, true) => format!("{difference}, because {}", why_ordinary(on)),
        (false, false) => format!("{difference}, by chance, because {}", why_ordinary(on)),
    }
}

/// The width of the steady epochs, in per cent.
fn spread(epochs: &Epochs) -> f64 {
    let times = || epochs.steady().iter().map(|epoch| epoch.took.as_secs_f64());
    let (low, high) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
    (high / low - 1.0) * 100.0
}

fn why_ordinary(on: &Outcome) -> String {
    // The policy says "ordinary memory (no CUDA here)".
    if on.policy.contains("no CUDA") {
        "there is no CUDA here, so batches were in ordinary memory both times".to_owned()
    } else {
        format!("not all batches were pinned: {}", on.policy)
    }
}

/// What was locked, if anything was asked to be.
fn locked(one: &Outcome) -> Option<String> {
    match (&*one.pin_memory, one.is_os_locked) {
        ("off", _) => None,
        (_, true) => Some(format!(
            "batches were in {} locked by the system, which keeps them resident, but is not \
             pinned to CUDA",
            bytes(one.locked_bytes as u64)
        )),
        (_, false) => Some(format!("batches were in {}", one.policy)),
    }
}
