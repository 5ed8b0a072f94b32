//! BO-09: errors and panics of every kind arrive whole, at their turn.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pinfeed::{BoxError, DataLoader, Dataset, Error, Result, Row, SampleRef, Subset};

use crate::common::{LIMIT, check_rich, failing, ids, samples, text_without_worker, within};
use crate::{WORKERS, only_error, turns};

/// Needs two values to be made, neither of which its text shows.
#[derive(Debug, PartialEq)]
pub(crate) struct Http {
    code: u16,
    url: Arc<str>,
}

impl fmt::Display for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server said no")
    }
}

impl std::error::Error for Http {}

/// Can not be copied, compared or made anew.
struct Opaque(Box<dyn Fn() -> u32 + Send + Sync>);

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opaque")
    }
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opaque {}", (self.0)())
    }
}

impl std::error::Error for Opaque {}

#[derive(Debug)]
struct Chained(Http);

impl fmt::Display for Chained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the image could not be fetched")
    }
}

impl std::error::Error for Chained {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

pub(crate) fn http() -> Http {
    Http { code: 418, url: "http://example.com/7".into() }
}

/// Ten samples in batches of three; sample 7 fails, in batch 2.
#[track_caller]
fn bo_09<E: Into<BoxError>>(
    message: &str,
    make: impl Fn() -> E + Clone + Send + Sync + 'static,
    check: impl Fn(&Error),
) {
    let mut texts = BTreeSet::new();
    for workers in WORKERS {
        let data = failing(10, 7, make.clone());
        let error = only_error(DataLoader::builder(data).num_workers(workers), 10, 3, 2);
        assert_eq!(error.index(), Some(7));
        assert_eq!(error.worker().is_some(), workers > 0, "{error}");
        assert!(error.worker().is_none_or(|worker| worker < workers));
        let text = error.to_string();
        for part in [message, "sample 7", "batch 2"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(error.is_dataset() && !error.is_collate() && !error.is_timeout(), "{error:?}");
        check(&error);
        texts.insert(text_without_worker(&error));
    }
    assert_eq!(texts.len(), 1, "one text, whatever the workers: {texts:?}");
}

#[test]
fn bo_09_an_error_keeps_its_type_and_values() {
    bo_09("the server said no", http, |error| {
        assert_eq!(error.source().unwrap().downcast_ref::<Http>(), Some(&http()));
        assert!(!error.is_panic());
    });
    let opaque = || Opaque(Box::new(|| 39));
    bo_09("opaque 39", opaque, |error| {
        let Some(opaque) = error.source().unwrap().downcast_ref::<Opaque>() else { panic!() };
        assert_eq!((opaque.0)(), 39);
    });
    // A text is an error too.
    bo_09("just a text", || "just a text", |error| assert!(error.source().is_some()));
}

#[test]
fn bo_09_a_chain_keeps_its_links() {
    bo_09(
        "the image could not be fetched",
        || Chained(http()),
        |error| {
            let chained = error.source().unwrap();
            assert!(chained.is::<Chained>());
            assert_eq!(chained.source().unwrap().downcast_ref::<Http>(), Some(&http()));
        },
    );
}

/// The counterpart of a class whose constructor raises: one that can not even
/// say what it is.
#[derive(Debug)]
struct Speechless {
    panics: bool,
}

impl fmt::Display for Speechless {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(!self.panics, "no words");
        Err(fmt::Error)
    }
}

impl std::error::Error for Speechless {}

#[test]
fn bo_09_an_error_that_can_not_be_shown() {
    for panics in [false, true] {
        bo_09("", move || Speechless { panics }, |_| {});
    }
}

/// The counterpart of one that can not be sent: it can not even be dropped.
#[derive(Debug)]
struct Clinging;

impl fmt::Display for Clinging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("clinging")
    }
}

impl std::error::Error for Clinging {}

impl Drop for Clinging {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("an error that panics when it is dropped");
        }
    }
}

/// A panic's payload is anything; this one panics in turn.
#[test]
fn bo_09_a_panic_whose_payload_can_not_be_dropped() {
    for workers in WORKERS {
        let data = samples(10, |index, row, _| {
            if index == 7 {
                std::panic::panic_any(Clinging);
            }
            Ok(row.put(index as i64)?)
        });
        let error = only_error(DataLoader::builder(data).num_workers(workers), 10, 3, 2);
        assert!(error.is_panic());
        assert_eq!(error.index(), Some(7));
    }
}

fn panics_with_text(index: usize) -> ! {
    panic!("no sample {index}")
}

#[test]
fn bo_09_a_panic_is_an_error() {
    type Panic = fn(usize) -> !;
    let panics: [(&str, Panic); 4] = [
        ("no sample 7", panics_with_text),
        ("no words", |_| panic!("no words")),
        ("index out of bounds", |index| {
            panic!("{}", [0; 3].get(index).map_or("index out of bounds", |_| ""))
        }),
        ("no text", |_| std::panic::panic_any(7u8)),
    ];
    for (message, panic) in panics {
        let mut texts = BTreeSet::new();
        for workers in WORKERS {
            let data = samples(10, move |index, row, _| {
                if index == 7 {
                    panic(index);
                }
                Ok(row.put(index as i64)?)
            });
            let error = only_error(DataLoader::builder(data).num_workers(workers), 10, 3, 2);
            assert!(error.is_panic() && error.to_string().contains(message), "{error}");
            assert_eq!(error.index(), Some(7));
            assert_eq!(error.worker().is_some(), workers > 0);
            texts.insert(text_without_worker(&error));
        }
        assert_eq!(texts.len(), 1, "{texts:?}");
    }
}

/// A worker that a panic has gone through is as good as before: the others'
/// samples come, for many epochs.
#[test]
fn a_panic_costs_no_worker() {
    let data = samples(30, |index, row, _| {
        assert_ne!(index % 3, 1, "sample {index} panics");
        Ok(row.put(index as i64)?)
    });
    let loader = DataLoader::builder(data).num_workers(2).persistent_workers(true).build().unwrap();
    within(LIMIT, move || {
        for _ in 0..5 {
            let turns = turns(&loader);
            assert_eq!(turns.len(), 30);
            for (index, turn) in turns.iter().enumerate() {
                assert_eq!(turn.is_err(), index % 3 == 1, "{turn:?}");
            }
        }
    });
}

/// An error of ours that user code passes on keeps its text, and gets the place.
#[test]
fn an_error_of_ours_passed_on() {
    for workers in WORKERS {
        let data = samples(10, |index, row, _| {
            if index == 7 {
                row.put_slice(&[2, 2], &[1i64])?;
            }
            Ok(row.put(index as i64)?)
        });
        let error = only_error(DataLoader::builder(data).num_workers(workers), 10, 3, 2);
        assert_eq!(error.index(), Some(7));
        let text = error.to_string();
        assert!(text.contains("1 values of i64 given for a tensor of shape [2, 2]"), "{text}");
    }
}

/// A data set that reads from a loader of its own: the place is the outer
/// loader's, and an inner timeout or cancellation is none of the outer's.
#[test]
fn an_error_of_a_loader_inside() {
    for workers in WORKERS {
        let data = samples(10, |index, row, _| {
            if index == 7 {
                let inner = failing(4, 1, || "the inner one");
                DataLoader::builder(inner).build()?.iter().collect::<Result<Vec<_>>>()?;
            }
            Ok(row.put(index as i64)?)
        });
        let error = only_error(DataLoader::builder(data).num_workers(workers), 10, 3, 2);
        assert_eq!(error.index(), Some(7), "{error}");
        assert!(error.to_string().contains("the inner one"), "{error}");

        let data = samples(10, |index, row, _| {
            if index == 7 {
                let inner = samples(1, |_, _, cx| {
                    while !cx.is_cancelled() {
                        thread::sleep(Duration::from_millis(1));
                    }
                    Err("cancelled".into())
                });
                let inner = DataLoader::builder(inner)
                    .num_workers(1)
                    .timeout(Duration::from_millis(300))
                    .build()?;
                inner.iter().collect::<Result<Vec<_>>>()?;
            }
            Ok(row.put(index as i64)?)
        });
        let error = only_error(DataLoader::builder(data).num_workers(workers), 10, 3, 2);
        assert_eq!(error.index(), Some(7), "{error}");
        assert!(!error.is_timeout(), "the outer loader has no timeout: {error}");
    }
}

/// The index is that of the loader's data set, also where a wrapper asks with
/// another.
#[test]
fn the_index_is_the_loaders() {
    for workers in WORKERS {
        let data = Subset::new(failing(40, 24, || "bad"), (10..40).collect::<Vec<_>>()).unwrap();
        let data =
            data.map(|sample: SampleRef<'_>, row: &mut Row<'_>, _: &mut _| Ok(sample.write(row)?));
        let loader = DataLoader::builder(data).batch_size(4).num_workers(workers).build().unwrap();
        let errors: Vec<Error> = loader.iter().filter_map(Result::err).collect();
        assert_eq!(errors.len(), 1);
        assert_eq!((errors[0].index(), errors[0].batch()), (Some(14), Some(3)), "{}", errors[0]);
    }
}

/// Of several samples that fail in a batch, the first is named, whoever was
/// faster.
#[test]
fn the_lowest_sample_is_blamed() {
    for workers in WORKERS {
        for _ in 0..10 {
            let data = samples(32, |index, row, _| match index {
                3 => {
                    thread::sleep(Duration::from_millis(2));
                    Err("slow to fail".into())
                }
                4 | 5 | 11 | 15 => Err("quick to fail".into()),
                _ => Ok(row.put(index as i64)?),
            });
            let loader =
                DataLoader::builder(data).batch_size(16).num_workers(workers).build().unwrap();
            let mut pass = loader.iter();
            let error = pass.next().unwrap().unwrap_err();
            assert_eq!(error.index(), Some(3), "{error}");
            assert_eq!(ids(&pass.next().unwrap().unwrap()), (16..32).collect::<Vec<_>>());
        }
    }
}

/// A sample larger than an object may be is an error of that sample.
#[test]
fn a_sample_of_impossible_size() {
    for workers in WORKERS {
        let data = samples(10, |index, row, _| {
            if index == 7 {
                row.tensor::<f32>(&[usize::MAX / 2, 9])?;
            }
            Ok(row.put(index as i64)?)
        });
        let error = only_error(DataLoader::builder(data).num_workers(workers), 10, 3, 2);
        assert_eq!(error.index(), Some(7), "{error}");
    }
}

/// A sample is written where other samples' bytes lay before: one that is left
/// half written does not come out.
#[test]
fn a_sample_that_fails_half_way() {
    for workers in WORKERS {
        let data = samples(30, |index, row, _| {
            row.named("id").put(index as i64)?;
            row.named("text").put_text(&"x".repeat(index % 7));
            row.named("image").tensor::<f32>(&[3])?.fill(index as f32);
            if index % 10 == 4 {
                return Err("half way".into());
            }
            row.named("raw").put_bytes(&index.to_le_bytes()[..index % 8]);
            Ok(())
        });
        let loader = DataLoader::builder(data).batch_size(3).num_workers(workers).build().unwrap();
        for (number, batch) in loader.iter().enumerate() {
            let first = number * 3;
            match batch {
                Ok(batch) => assert_eq!(check_rich(&batch, 3), [first, first + 1, first + 2]),
                Err(error) => assert_eq!(error.index().unwrap() % 10, 4),
            }
        }
    }
}
