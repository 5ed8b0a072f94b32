//! Where the JSON goes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use serde::Serialize;

use crate::args::JsonArg;
use crate::output::{self, Channel};

pub(crate) enum JsonSink {
    Nowhere,
    Stdout,
    File(JsonFile),
}

impl JsonSink {
    /// Opens the file now: better no run than one whose figures are lost.
    pub(crate) fn open(to: Option<&JsonArg>) -> Result<Self> {
        Ok(match to {
            None => JsonSink::Nowhere,
            Some(JsonArg::Stdout) => JsonSink::Stdout,
            Some(JsonArg::File(path)) => JsonSink::File(JsonFile::open(path)?),
        })
    }

    /// Where that leaves the table.
    pub(crate) fn channel_for_people(&self) -> Channel {
        match self {
            JsonSink::Stdout => Channel::Stderr,
            JsonSink::Nowhere | JsonSink::File(_) => Channel::Stdout,
        }
    }

    pub(crate) fn write(self, value: &impl Serialize) -> Result<()> {
        match self {
            JsonSink::Nowhere => Ok(()),
            JsonSink::Stdout => output::stdout(serde_json::to_string_pretty(value)?),
            JsonSink::File(file) => file.write(&serde_json::to_string_pretty(value)?),
        }
    }
}

/// A file that is not touched before there is something to write.
pub(crate) struct JsonFile {
    path: PathBuf,
    file: File,
    /// It was not there before, and nothing is in it yet.
    ours_and_empty: bool,
}

impl JsonFile {
    fn open(path: &Path) -> Result<Self> {
        let new = OpenOptions::new().write(true).create_new(true).open(path);
        let (opened, new) = match new {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                (OpenOptions::new().write(true).open(path), false)
            }
            new => (new, true),
        };
        let file = opened.map_err(|e| cannot_write(path, &e))?;
        Ok(JsonFile { path: path.to_owned(), file, ours_and_empty: new })
    }

    fn write(mut self, text: &str) -> Result<()> {
        let write = |file: &mut File| {
            // Not so a pipe, or /dev/stderr.
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
            writeln!(file, "{text}")
        };
        write(&mut self.file).map_err(|e| cannot_write(&self.path, &e))?;
        self.ours_and_empty = false;
        Ok(())
    }
}

impl Drop for JsonFile {
    fn drop(&mut self) {
        if self.ours_and_empty {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> anyhow::Error {
    let path = path.display();
    anyhow!(
        "--json {path}: can not be written: {error}; give a file in a folder that you may write to"
    )
}
