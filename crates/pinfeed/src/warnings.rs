//! Warnings of one loader: each once, to `tracing` and to who asks.

use std::sync::{Mutex, PoisonError};

/// What a loader has to say that is no error.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<Vec<(&'static str, String)>>);

impl Warnings {
    /// Warns, unless a warning of this `kind` has been given.
    pub(crate) fn once(&self, kind: &'static str, message: impl FnOnce() -> String) {
        let given = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if given().iter().any(|(k, _)| *k == kind) {
            return;
        }
        // User code, both the text of an error and a subscriber of `tracing`:
        // not under the lock.
        let message = message();
        let mut all = given();
        if all.iter().any(|(k, _)| *k == kind) {
            return;
        }
        all.push((kind, message.clone()));
        drop(all);
        tracing::warn!("{message}");
    }

    pub(crate) fn all(&self) -> Vec<String> {
        let given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.iter().map(|(_, message)| message.clone()).collect()
    }
}
