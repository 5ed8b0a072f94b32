//! Warnings of one loader: each once, to `tracing` and to who asks.

use std::sync::{Mutex, PoisonError};

/// What a loader has to say that is no error.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<Vec<(&'static str, String)>>);

impl Warnings {
    /// Warns, unless a warning of this `kind` has been given.
    pub(crate) fn once(&self, kind: &'static str, message: impl FnOnce() -> String) {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if given.iter().any(|(k, _)| *k == kind) {
            return;
        }
        let message = message();
        tracing::warn!("{message}");
        given.push((kind, message));
    }

    pub(crate) fn all(&self) -> Vec<String> {
        let given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.iter().map(|(_, message)| message.clone()).collect()
    }
}
