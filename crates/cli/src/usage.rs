//! What clap has to say, on one line if it is an error.

use std::io;
use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::{FAILED, output};

/// Prints help or version in full, an error as one line; and the exit code.
pub(crate) fn answer(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => ExitCode::from(FAILED),
            _ => ExitCode::SUCCESS,
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // On stderr: if that fails, there is nobody left to tell.
            let _ = error.print();
            ExitCode::from(FAILED)
        }
        _ => {
            output::stderr(shortened(&error.to_string()));
            ExitCode::from(FAILED)
        }
    }
}

/// Clap's text without the usage, its lines joined.
fn shortened(text: &str) -> String {
    let is_end =
        |line: &&str| line.starts_with("Usage:") || line.starts_with("For more information");
    let said: Vec<&str> = text.lines().take_while(|line| !is_end(line)).collect();
    let said = output::one_line(&said.join("\n")).replace(" tip: ", "; ");
    format!("{said}; try --help")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::shortened;
    use crate::args::Cli;

    fn said(args: &[&str]) -> String {
        let args = ["pinfeed"].iter().chain(args);
        shortened(&Cli::try_parse_from(args).unwrap_err().to_string())
    }

    #[test]
    fn errors_are_one_line() {
        assert_eq!(
            said(&["bench", "--batch-size", "0"]),
            "error: invalid value '0' for '--batch-size <N>': give a whole number from 1 to \
             1000000000; try --help"
        );
        assert_eq!(
            said(&["bench", "--pin-memory", "of"]),
            "error: invalid value 'of' for '--pin-memory <WHICH>' [possible values: off, on, lock, \
             both]; a similar value exists: 'off'; try --help"
        );
        assert_eq!(
            said(&["bench", "--worker", "0"]),
            "error: unexpected argument '--worker' found; a similar argument exists: '--num-workers'; \
             try --help"
        );
    }
}
