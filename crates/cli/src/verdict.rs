//! One sentence: where the time went, and what would help.

use pinfeed::Unpinned;

use crate::measure::{Epoch, Epochs};
use crate::report::{Machine, Outcome, Settings};
use crate::table::{bytes, percent, seconds};

/// Up to so many per cent of the work, loading is hidden behind it.
pub(crate) const HIDDEN: f64 = 5.0;

/// Epochs differ by so many per cent for no reason.
const NOISE: f64 = 1.0;

pub(crate) fn verdict(settings: &Settings, machine: &Machine, results: &[Outcome]) -> String {
    let (loading, memory) = match results {
        [] => return String::new(),
        [one] => (loading(settings, machine, one), granted(one)),
        [off, on, ..] => (loading(settings, machine, off), Some(compared(off, on))),
    };
    match memory {
        Some(memory) => format!("{loading}; {memory}."),
        None => format!("{loading}."),
    }
}

fn took(epoch: &Epoch) -> f64 {
    epoch.took.as_secs_f64()
}

/// Is it the loading, or is it the work that an epoch's time is made of?
fn loading(settings: &Settings, machine: &Machine, outcome: &Outcome) -> String {
    let epochs = &outcome.epochs;
    let Some(over) = outcome.overhead_percent else {
        return format!(
            "There is no work to hide behind (--work-ms 0): loading alone takes {} an epoch",
            seconds(outcome.mean_s),
        );
    };
    let work_s = epochs.median(|epoch| epoch.worked.as_secs_f64());
    let figure = format!("{} over the {} of work in an epoch", percent(over), seconds(work_s));
    let workers = settings.num_workers;
    if over <= HIDDEN {
        return match workers {
            0 => format!("Loading costs little even without workers: {figure}"),
            _ => format!("Loading hides behind the work: {figure}"),
        };
    }
    if workers == 0 {
        return format!(
            "Nothing is loaded during the work, because there are no workers: {figure}; with \
             --num-workers 1 or more it would be"
        );
    }
    if let Some(alone_s) = outcome.loading_s
        && alone_s > work_s
    {
        return format!(
            "Loading takes longer than the work ({} an epoch alone): {figure}; {}",
            seconds(alone_s),
            faster(workers, machine.cpus),
        );
    }
    let first_s = epochs.median(|epoch| epoch.first_batch.as_secs_f64());
    let other_waits = epochs.median(|epoch| took(epoch) - epoch.worked.as_secs_f64()) - first_s;
    if other_waits <= work_s * HIDDEN / 100.0 {
        return format!(
            "Loading hides behind the work but for the first batch of an epoch, which takes {}: \
             {figure}; smaller batches would come sooner",
            seconds(first_s),
        );
    }
    let alone = match outcome.loading_s {
        Some(alone_s) => format!("takes {} an epoch alone", seconds(alone_s)),
        None => "takes less time than the work".to_owned(),
    };
    format!("Loading {alone}, but does not quite hide behind the work: {figure}; {}", {
        calmer(workers, machine.cpus)
    })
}

/// What would make loading faster.
fn faster(workers: usize, cpus: usize) -> String {
    if workers < cpus {
        return format!(
            "more workers ({workers} now, and {cpus} CPUs) or data that is faster to read and \
             decode would help"
        );
    }
    format!(
        "data that is faster to read and decode, or more CPUs ({cpus} now) would help, and more \
         workers if they wait for a disk"
    )
}

/// What would make batches that are there come in time.
fn calmer(workers: usize, cpus: usize) -> String {
    if workers > cpus {
        return format!(
            "{workers} workers on {cpus} CPUs get in the program's way: try --num-workers {cpus}"
        );
    }
    "batches are so short, or the CPUs so busy with something else, that handing them over counts"
        .to_owned()
}

/// What the second setting changed.
fn compared(off: &Outcome, on: &Outcome) -> String {
    let change = (on.epochs.median(took) / off.epochs.median(took) - 1.0) * 100.0;
    let is_noise = change.abs() <= NOISE.max(spread(&off.epochs)).max(spread(&on.epochs));
    let size = percent(change.abs());
    if !on.is_pinned {
        let size = if is_noise { String::new() } else { format!(" ({size} is noise)") };
        return format!("pin_memory made no difference{size}, because {}", ordinary(on));
    }
    match (is_noise, change > 0.0) {
        (true, _) => "pin_memory made no difference".to_owned(),
        (false, true) => format!("with pin_memory an epoch took {size} longer"),
        (false, false) => format!("with pin_memory an epoch took {size} less"),
    }
}

/// The width of the steady epochs, in per cent.
fn spread(epochs: &Epochs) -> f64 {
    let times = || epochs.steady().iter().map(took);
    let (low, high) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
    (high / low - 1.0) * 100.0
}

/// What became of the wish for other memory, if there was one.
fn granted(one: &Outcome) -> Option<String> {
    if one.is_pinned || one.why_unpinned == Some(Unpinned::NotAsked) {
        return None;
    }
    if one.is_os_locked {
        return Some(format!(
            "batches were in {} of memory locked by the system, which stays resident, but is not \
             pinned for CUDA",
            bytes(one.locked_bytes as u64)
        ));
    }
    Some(ordinary(one))
}

/// Why batches were not pinned.
fn ordinary(outcome: &Outcome) -> String {
    match outcome.why_unpinned {
        Some(Unpinned::NoCuda) => {
            "this version of pinfeed has no CUDA yet, so batches were in ordinary memory".to_owned()
        }
        _ => format!("batches were in {}", outcome.policy),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn settings(num_workers: usize) -> Settings {
        Settings {
            batch_size: 10,
            num_workers,
            work_ms: 10,
            runs: 1,
            device: "cpu",
            shuffle: true,
            seed: 0,
        }
    }

    /// One epoch with 1 s of work, with the milliseconds for the first batch
    /// and for all others.
    fn outcome(first: u64, others: u64, loading_s: Option<f64>) -> Outcome {
        let ms = Duration::from_millis;
        let epochs = Epochs::from(vec![Epoch {
            took: ms(1000 + first + others),
            worked: ms(1000),
            first_batch: ms(first),
        }]);
        Outcome {
            pin_memory: "off".to_owned(),
            policy: "ordinary memory".to_owned(),
            is_pinned: false,
            is_os_locked: false,
            device: "cpu",
            epochs_s: Vec::new(),
            mean_s: 1.0,
            work_s: 1.0,
            overhead_percent: epochs.overhead_percent(),
            first_epoch_overhead_percent: None,
            samples: 100,
            samples_per_s: 100.0,
            first_batch_ms: first as f64,
            pinned_bytes: 0,
            locked_bytes: 0,
            slots: 3,
            warnings: Vec::new(),
            channel_mean: None,
            label_counts: None,
            loading_s,
            why_unpinned: Some(Unpinned::NotAsked),
            epochs,
        }
    }

    #[track_caller]
    fn says(workers: usize, results: &[Outcome], expected: &str) {
        let machine = Machine { cpus: 4, gpu: None };
        assert_eq!(verdict(&settings(workers), &machine, results), expected);
    }

    #[test]
    fn loading_is_judged_by_what_it_takes_alone() {
        says(
            2,
            &[outcome(2, 8, None)],
            "Loading hides behind the work: 1.0 % over the 1.00 s of work in an epoch.",
        );
        says(
            2,
            &[outcome(200, 800, Some(2.0))],
            "Loading takes longer than the work (2.00 s an epoch alone): 100.0 % over the 1.00 s \
             of work in an epoch; more workers (2 now, and 4 CPUs) or data that is faster to read \
             and decode would help.",
        );
        says(
            6,
            &[outcome(20, 100, Some(0.5))],
            "Loading takes 500 ms an epoch alone, but does not quite hide behind the work: 12.0 % \
             over the 1.00 s of work in an epoch; 6 workers on 4 CPUs get in the program's way: \
             try --num-workers 4.",
        );
        says(
            2,
            &[outcome(100, 10, Some(0.5))],
            "Loading hides behind the work but for the first batch of an epoch, which takes 100 \
             ms: 11.0 % over the 1.00 s of work in an epoch; smaller batches would come sooner.",
        );
        says(
            0,
            &[outcome(100, 900, None)],
            "Nothing is loaded during the work, because there are no workers: 100.0 % over the \
             1.00 s of work in an epoch; with --num-workers 1 or more it would be.",
        );
    }

    #[test]
    fn pin_memory_is_judged_by_what_the_batches_were() {
        let off = || outcome(2, 8, None);
        let on = |others| Outcome {
            pin_memory: "on".to_owned(),
            why_unpinned: Some(Unpinned::NoCuda),
            ..outcome(2, others, None)
        };
        let hides = "Loading hides behind the work: 1.0 % over the 1.00 s of work in an epoch";
        says(
            2,
            &[off(), on(8)],
            &format!(
                "{hides}; pin_memory made no difference, because this version of pinfeed \
                 has no CUDA yet, so batches were in ordinary memory."
            ),
        );
        says(
            2,
            &[off(), on(109)],
            &format!(
                "{hides}; pin_memory made no difference (10.0 % is noise), because this version of \
                 pinfeed has no CUDA yet, so batches were in ordinary memory."
            ),
        );
        let pinned = Outcome { is_pinned: true, why_unpinned: None, ..on(109) };
        says(
            2,
            &[off(), pinned],
            &format!("{hides}; with pin_memory an epoch took 10.0 % longer."),
        );
    }

    #[test]
    fn the_systems_lock_is_not_called_pinned() {
        let locked = Outcome {
            is_os_locked: true,
            locked_bytes: 3 << 20,
            why_unpinned: Some(Unpinned::OsLockOnly),
            ..outcome(2, 8, None)
        };
        says(
            2,
            &[locked],
            "Loading hides behind the work: 1.0 % over the 1.00 s of work in an epoch; batches \
             were in 3.0 MiB of memory locked by the system, which stays resident, but is not \
             pinned for CUDA.",
        );
    }
}
