//! Writing to stdout and stderr.
//!
//! `println!` panics if nobody reads. Here a reader that has left is no error:
//! `pinfeed bench | head -1` has what it wanted.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use anyhow::{Result, anyhow};

/// Where text for people goes: stdout, unless the JSON goes there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Channel {
    Stdout,
    Stderr,
}

impl Channel {
    /// Writes a line.
    pub(crate) fn say(self, line: impl Display) -> Result<()> {
        match self {
            Channel::Stdout => stdout(line),
            Channel::Stderr => {
                stderr(line);
                Ok(())
            }
        }
    }
}

/// Writes a line to stdout, at once.
pub(crate) fn stdout(line: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|e| {
            anyhow!("stdout can not be written: {e}; send it elsewhere, or use --json FILE")
        }),
    }
}

/// Writes a line to stderr. If that fails, there is nobody left to tell.
pub(crate) fn stderr(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// The text without line breaks: a path may have some.
pub(crate) fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
