//! `pinfeed bench`: each setting of `pin_memory` on the same data.

use anyhow::Result;

use crate::args::BenchArgs;
use crate::data::{Data, Source};
use crate::json::JsonSink;
use crate::measure::{self, Epochs, Image, Seen};
use crate::progress::Progress;
use crate::report::{Machine, Outcome, Report, Settings};
use crate::verdict::HIDDEN;
use crate::verify::Verified;
use crate::{log, output, table};

pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    let json = JsonSink::open(args.json.as_ref())?;
    let people = json.channel_for_people();
    let mut warnings = Warnings::default();

    let source = Source::choose(args.data.as_ref());
    let spinner = Progress::spinner(format_args!("opening {source}"));
    let (opened, said) = log::warnings_of(|| Data::open(&source));
    drop(spinner);
    warnings.say(&said);
    let data = opened?;
    people.say(table::head(
        &format!("{source}: {data}"),
        &Settings::of(args),
        data.samples(),
        Machine::here().cpus,
    ))?;

    // What a later setting is refused or warned for is said before the first
    // one's epochs, not after them.
    for setting in args.pin_memory.settings() {
        warnings.say(&measure::loader(&data.dataset, setting, args)?.warnings());
    }

    let mut results = Vec::new();
    let mut image = None;
    for setting in args.pin_memory.settings() {
        let (outcome, seen) = measure(args, &data, setting, &mut warnings)?;
        if results.is_empty() {
            people.say(table::titles())?;
        }
        people.say(table::row(&outcome))?;
        image = image.or(seen);
        results.push(outcome);
    }
    for line in results.iter().filter_map(table::verified) {
        people.say(line)?;
    }
    let report = Report::new(args, &data, image.as_ref(), results);
    people.say(format_args!("\n{}", report.verdict))?;
    json.write(&report)
}

/// Runs the epochs of one setting. Its loader, and with it the memory, is gone
/// when the next one is made.
fn measure(
    args: &BenchArgs,
    data: &Data,
    setting: pinfeed::PinMemory,
    warnings: &mut Warnings,
) -> Result<(Outcome, Option<Image>)> {
    let loader = measure::loader(&data.dataset, setting.clone(), args)?;
    let planned = args.runs + usize::from(args.verify);
    let progress = Progress::batches(planned as u64 * loader.len() as u64);
    let mut seen = Seen::default();
    let epochs = Epochs::run(&loader, args.work, args.runs, &progress, &mut seen)?;
    let mut outcome = Outcome::new(&setting, args, &loader, epochs, &seen);
    if args.num_workers > 0 && outcome.overhead_percent.is_some_and(|over| over > HIDDEN) {
        // Is it the loading? A guess would do for no verdict.
        progress.more(loader.len() as u64);
        outcome.loading_s = Some(measure::loading_alone(&loader, &progress)?);
    }
    if args.verify {
        outcome.add_verified(Verified::run(&loader, &data.label_counts, &progress)?);
    }
    drop(progress);
    warnings.say(&loader.warnings());
    Ok((outcome, seen.image().cloned()))
}

/// Warnings on stderr, each once: two settings have much to say in common.
#[derive(Default)]
struct Warnings(Vec<String>);

impl Warnings {
    fn say(&mut self, warnings: &[String]) {
        for warning in warnings {
            if !self.0.contains(warning) {
                output::stderr(format_args!("warning: {}", output::one_line(warning)));
                self.0.push(warning.clone());
            }
        }
    }
}
