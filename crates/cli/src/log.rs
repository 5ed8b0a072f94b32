//! The library's `tracing` events.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// Sends all events to stderr, if `PINFEED_LOG` or `RUST_LOG` names a level
/// (`error`, `warn`, `info`, `debug`, `trace`).
pub(crate) fn init() {
    let set = ["PINFEED_LOG", "RUST_LOG"].iter().find_map(std::env::var_os);
    let Some(level) = set else { return };
    // RUST_LOG may be meant for another program, in another syntax.
    let level = level.to_str().and_then(|text| text.parse().ok()).unwrap_or(LevelFilter::INFO);
    tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).init();
}

/// Calls `f` and returns the warnings that it gave on this thread, one line
/// each. (Loaders have a list of their own; opening data has not.)
pub(crate) fn warnings_of<T>(f: impl FnOnce() -> T) -> (T, Vec<String>) {
    let lines = Lines::default();
    let writer = lines.clone();
    let guard = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .without_time()
        .with_level(false)
        .with_target(false)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .set_default();
    let value = f();
    drop(guard);
    let bytes = std::mem::take(&mut *lines.0.lock().unwrap_or_else(PoisonError::into_inner));
    let text = String::from_utf8_lossy(&bytes);
    (value, text.lines().map(|line| line.trim().to_owned()).collect())
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
