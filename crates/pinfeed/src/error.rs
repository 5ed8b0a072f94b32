//! The one error of this crate.
//!
//! It says what was done, to which sample, batch, worker or path, and what to
//! try. One type, because errors of every stage come out of one place: the
//! iterator's `next`.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// What a data set, transform or collate function may fail with: any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of loading data, with the place it happened at.
///
/// Ask what kind it is with the `is_*` methods; the cause, where there is one,
/// is its [`source`](std::error::Error::source).
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    /// Was it a panic of user code?
    panicked: bool,
    message: String,
    place: Place,
    hint: Option<String>,
    source: Option<BoxError>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A stranger's drop may panic, and errors are dropped where nobody
        // would catch it.
        let source = self.source.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(source))) {
            std::mem::forget(payload);
        }
    }
}

/// Where an error happened. All that is not known is left out of the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    batch: Option<u64>,
    index: Option<usize>,
    worker: Option<usize>,
    path: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A setting, refused before anything ran.
    Config,
    /// The data set (or a transform on it) could not give a sample.
    Dataset,
    /// Samples do not fit together into a batch.
    Collate,
    /// The sampler gave something that is not an index of the data set.
    Sampler,
    /// Waited longer than the loader's `timeout`.
    Timeout,
    /// Memory could not be had or locked.
    Memory,
    /// A tensor was asked for as what it is not (dtype, shape, count).
    Tensor,
    /// A file is not what it should be, or can not be read.
    Format,
    /// Used in a process forked after it was made.
    Fork,
    /// No thread could be started.
    Thread,
    /// The iterator was dropped while a sample was being made; nobody sees it.
    Cancelled,
}

impl Kind {
    /// The stage, as the first word of the message.
    fn stage(self) -> &'static str {
        match self {
            Kind::Config => "settings",
            Kind::Dataset => "dataset",
            Kind::Collate => "collate",
            Kind::Sampler => "sampler",
            Kind::Timeout => "timeout",
            Kind::Memory => "memory",
            Kind::Tensor => "tensor",
            Kind::Format => "file",
            Kind::Fork => "fork",
            Kind::Thread => "worker",
            Kind::Cancelled => "cancelled",
        }
    }
}

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            panicked: false,
            message: message.into(),
            place: Place::default(),
            hint: None,
            source: None,
        }))
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(Kind::Config, message)
    }

    pub(crate) fn tensor(message: impl Into<String>) -> Self {
        Self::new(Kind::Tensor, message)
    }

    /// A file that can not be read or understood.
    #[cfg(feature = "image")]
    pub(crate) fn format(path: impl AsRef<Path>, message: impl Into<String>) -> Self {
        let mut error = Self::new(Kind::Format, message);
        error.0.place.path = Some(path.as_ref().to_owned());
        error
    }

    /// What user code returned. An error of ours stays what it is, unless it
    /// came out of a loader that the user code has: its place is not ours.
    pub(crate) fn from_user(kind: Kind, source: BoxError) -> Self {
        match source.downcast::<Error>() {
            Ok(ours) if ours.is_of_a_loader() => {
                Self::new(kind, ours.to_string()).with_source(ours)
            }
            Ok(ours) => *ours,
            Err(source) => Self::new(kind, shown(&*source)).with_source(source),
        }
    }

    fn is_of_a_loader(&self) -> bool {
        let Inner { kind, place, .. } = &*self.0;
        place.batch.is_some()
            || place.index.is_some()
            || matches!(kind, Kind::Timeout | Kind::Fork | Kind::Thread | Kind::Cancelled)
    }

    /// A panic's payload, as an error with its message.
    pub(crate) fn from_panic(kind: Kind, payload: Box<dyn std::any::Any + Send>) -> Self {
        let message = match payload.downcast::<String>() {
            Ok(text) => *text,
            Err(payload) => match payload.downcast::<&'static str>() {
                Ok(text) => (*text).to_owned(),
                Err(payload) => {
                    // Its drop is user code, which may panic once more.
                    std::mem::forget(payload);
                    "a panic with a payload that is no text".to_owned()
                }
            },
        };
        let mut error = Self::new(kind, format!("panicked: {message}"));
        error.0.panicked = true;
        error
    }

    /// What to try. The last one given stays.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    pub(crate) fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Names the sample, unless a deeper layer has named one already.
    pub(crate) fn at_index(mut self, index: usize) -> Self {
        self.0.place.index.get_or_insert(index);
        self
    }

    pub(crate) fn at_batch(mut self, batch: u64) -> Self {
        self.0.place.batch.get_or_insert(batch);
        self
    }

    pub(crate) fn at_worker(mut self, worker: Option<usize>) -> Self {
        if self.0.place.worker.is_none() {
            self.0.place.worker = worker;
        }
        self
    }

    #[cfg(feature = "image")]
    pub(crate) fn at_path(mut self, path: impl AsRef<Path>) -> Self {
        self.0.place.path.get_or_insert_with(|| path.as_ref().to_owned());
        self
    }

    /// A setting was refused; nothing ran.
    pub fn is_config(&self) -> bool {
        self.0.kind == Kind::Config
    }

    /// The data set, a transform or a file of it failed for one sample.
    pub fn is_dataset(&self) -> bool {
        matches!(self.0.kind, Kind::Dataset | Kind::Format)
    }

    /// User code panicked; the message is the panic's.
    pub fn is_panic(&self) -> bool {
        self.0.panicked
    }

    /// Samples of a batch do not fit together.
    pub fn is_collate(&self) -> bool {
        self.0.kind == Kind::Collate
    }

    /// The loader's `timeout` passed. The next `next()` waits for the same
    /// batch again.
    pub fn is_timeout(&self) -> bool {
        self.0.kind == Kind::Timeout
    }

    /// Memory could not be had or could not be locked.
    pub fn is_out_of_memory(&self) -> bool {
        self.0.kind == Kind::Memory
    }

    /// A file could not be read or is not what it should be.
    pub fn is_format(&self) -> bool {
        self.0.kind == Kind::Format
    }

    /// The loader was made before this process was forked.
    pub fn is_fork(&self) -> bool {
        self.0.kind == Kind::Fork
    }

    /// The batch's number within its epoch, from 0.
    pub fn batch(&self) -> Option<u64> {
        self.0.place.batch
    }

    /// The data set index of the sample.
    pub fn index(&self) -> Option<usize> {
        self.0.place.index
    }

    /// The worker thread's number, from 0; `None` for `num_workers = 0`.
    pub fn worker(&self) -> Option<usize> {
        self.0.place.worker
    }

    /// The file.
    pub fn path(&self) -> Option<&Path> {
        self.0.place.path.as_deref()
    }
}

/// An error's text. Making it is user code, which may fail or panic.
fn shown(error: &(dyn std::error::Error + Send + Sync)) -> String {
    let text = catch_unwind(AssertUnwindSafe(|| {
        let mut text = String::new();
        fmt::write(&mut text, format_args!("{error}")).map(|()| text)
    }));
    match text {
        Ok(Ok(text)) => text,
        _ => "an error that can not be shown".to_owned(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, message, place, hint, .. } = &*self.0;
        write!(f, "{}", kind.stage())?;
        let mut sep = " (";
        for (name, number) in [
            ("sample", place.index.map(|i| i as u64)),
            ("batch", place.batch),
            ("worker", place.worker.map(|w| w as u64)),
        ] {
            if let Some(number) = number {
                write!(f, "{sep}{name} {number}")?;
                sep = ", ";
            }
        }
        if let Some(path) = &place.path {
            write!(f, "{sep}{}", path.display())?;
            sep = ", ";
        }
        if sep == ", " {
            write!(f, ")")?;
        }
        write!(f, ": {message}")?;
        if let Some(hint) = hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

/// As it is shown, with its causes: what `fn main() -> pinfeed::Result<()>`
/// prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut source = std::error::Error::source(self);
        let mut before = self.0.message.clone();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Mostly the message is the cause's.
            if text != before {
                write!(f, "\n  caused by: {text}")?;
            }
            before = text;
            source = cause.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

impl From<pinfeed_mem::Error> for Error {
    fn from(source: pinfeed_mem::Error) -> Self {
        let kind = if source.is_fork() { Kind::Fork } else { Kind::Memory };
        Self::new(kind, source.to_string()).with_source(source)
    }
}
