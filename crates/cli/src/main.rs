//! The command line of pinfeed.
//!
//! ```text
//! args -> cmd/bench: data -> measure, verify -> report -> table, verdict, JSON
//! ```
//!
//! Whatever goes wrong is one line on stderr and exit code 2.

#![forbid(unsafe_code)]

mod args;
mod cmd;
mod data;
mod json;
mod log;
mod measure;
mod output;
mod progress;
mod report;
mod table;
mod usage;
mod verdict;
mod verify;

use std::process::ExitCode;

use clap::Parser;

use self::args::{Cli, Command};

/// The exit code of whatever went wrong: clap's.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::answer(&error),
    };
    log::init();
    let result = match cli.command {
        Command::Bench(args) => cmd::bench::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::stderr(format_args!("error: {}", output::one_line(&error.to_string())));
            ExitCode::from(FAILED)
        }
    }
}
