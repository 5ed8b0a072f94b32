//! The progress bar: on stderr, and only if that is a terminal.

use std::fmt::Display;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// For something of unknown length.
    pub(crate) fn spinner(what: impl Display) -> Self {
        let bar = ProgressBar::new_spinner().with_message(what.to_string());
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress(bar)
    }

    /// For so many batches.
    pub(crate) fn batches(count: u64) -> Self {
        let bar = ProgressBar::new(count);
        if let Ok(style) = ProgressStyle::with_template("{msg}  {wide_bar}  {eta} left") {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// So many more than was thought.
    pub(crate) fn more(&self, count: u64) {
        self.0.inc_length(count);
    }

    pub(crate) fn now(&self, what: impl Display) {
        // Formatting is for nothing if nobody sees it.
        if !self.0.is_hidden() {
            self.0.set_message(what.to_string());
        }
    }

    /// One batch more. Draws at most 20 times a second.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
