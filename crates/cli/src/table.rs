//! The figures for people.

use crate::report::{Outcome, Settings};

/// What is loaded, how, and beside what work.
pub(crate) fn head(data: &str, settings: &Settings, samples: usize, cpus: usize) -> String {
    let Settings { batch_size, num_workers, work_ms, runs, device, seed, .. } = *settings;
    let size = count(batch_size as u64);
    let workers = plural(num_workers, "worker", "workers");
    let cpus = plural(cpus, "CPU", "CPUs");
    let batches = plural(samples.div_ceil(batch_size), "batch", "batches");
    let floor = seconds(settings.floor_s(samples));
    let work = count(work_ms);
    let epochs = plural(runs, "epoch", "epochs");
    format!(
        "data     {data}\n\
         loader   batch size {size}, {workers}, shuffled (seed {seed}), device {device}, {cpus}\n\
         work     {work} ms a batch x {batches}: {floor} an epoch; {epochs} a setting\n"
    )
}

/// The first line of the table, which is two.
pub(crate) fn titles() -> String {
    let above = ["", "", "over the", "first", "first", "", "", ""];
    let below = ["pin_memory", "epoch", "work", "epoch", "batch", "samples/s", "locked", "memory"];
    format!("{}\n{}", line(above.map(String::from)), line(below.map(String::from)))
}

/// One setting.
pub(crate) fn row(outcome: &Outcome) -> String {
    line([
        outcome.pin_memory.clone(),
        seconds(outcome.mean_s),
        outcome.overhead_percent.map_or_else(|| "-".to_owned(), percent),
        outcome.first_epoch_overhead_percent.map_or_else(|| "-".to_owned(), percent),
        seconds(outcome.first_batch_ms / 1e3),
        count(outcome.samples_per_s.round() as u64),
        bytes(outcome.locked_bytes as u64),
        outcome.policy.clone(),
    ])
}

/// What `--verify` found.
pub(crate) fn verified(outcome: &Outcome) -> Option<String> {
    let means: Vec<String> =
        outcome.channel_mean.as_ref()?.iter().map(|mean| format!("{mean:.4}")).collect();
    let labels = outcome.label_counts.as_ref()?;
    Some(format!(
        "verified {}: {} samples of {} classes, as many of each as the data has; mean of the \
         channels {}",
        outcome.pin_memory,
        count(labels.iter().sum()),
        count(labels.len() as u64),
        means.join(" "),
    ))
}

/// Text to the left, numbers to the right.
fn line([name, epoch, over, first, batch, samples, locked, memory]: [String; 8]) -> String {
    let line = format!(
        "{name:<10}  {epoch:>9}  {over:>9}  {first:>8}  {batch:>8}  {samples:>10}  {locked:>9}  {memory}"
    );
    line.trim_end().to_owned()
}

/// 50000 as "50,000".
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(n as u64), if n == 1 { one } else { many })
}

/// A time in the unit that suits it.
pub(crate) fn seconds(s: f64) -> String {
    let ms = s * 1e3;
    if s >= 1.0 {
        format!("{s:.2} s")
    } else if ms >= 10.0 || ms == 0.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{ms:.2} ms")
    }
}

pub(crate) fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

/// A size in the unit that suits it.
pub(crate) fn bytes(n: u64) -> String {
    let mut n = n as f64;
    let units = ["bytes", "KiB", "MiB", "GiB"];
    let mut unit = 0;
    while n >= 1024.0 && unit + 1 < units.len() {
        n /= 1024.0;
        unit += 1;
    }
    format!("{n:.*} {}", usize::from(unit > 0), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_people_read_them() {
        assert_eq!(
            [0, 999, 1000, 50_000, 1_234_567].map(count),
            ["0", "999", "1,000", "50,000", "1,234,567"]
        );
        assert_eq!(
            [0.0, 0.000_12, 0.012_4, 0.999, 4.9].map(seconds),
            ["0 ms", "0.12 ms", "12 ms", "999 ms", "4.90 s"]
        );
        assert_eq!(
            [0, 1023, 4096, 512_000, 3 << 30].map(bytes),
            ["0 bytes", "1023 bytes", "4.0 KiB", "500.0 KiB", "3.0 GiB"]
        );
    }
}
