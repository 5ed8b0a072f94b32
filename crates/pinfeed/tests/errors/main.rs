//! Errors: each at its batch's turn, with the place and the cause; after it
//! the pass goes on. Never a short epoch, never a hang, never a batch with
//! rows that nobody wrote.

mod cause;
mod collate;
#[path = "../common/mod.rs"]
mod common;
mod first;
mod fit;
mod layout;
mod many;
mod memory;
mod sampler;
mod small;

use std::time::Duration;

use common::{LIMIT, ids, in_batches, text_without_worker, timed, within};
use pinfeed::{Batch, Builder, Dataset, Error, Result};

/// `num_workers`: none, one, some, and more than there are rows.
pub(crate) const WORKERS: [usize; 4] = [0, 1, 2, 5];

/// What came at each turn: samples, or the error's text.
#[track_caller]
pub(crate) fn turns(
    pass: impl IntoIterator<Item = Result<Batch>>,
) -> Vec<Result<Vec<usize>, String>> {
    pass.into_iter()
        .map(|batch| match batch {
            Ok(batch) => Ok(ids(&batch)),
            Err(error) => Err(text_without_worker(&error)),
        })
        .collect()
}

/// The error that the pass has at `batch`, which is its only one; the rest is
/// 0, 1, 2, ... in batches of `batch_size`. Asks for two passes.
#[track_caller]
pub(crate) fn only_error<D: Dataset + 'static>(
    builder: Builder<D>,
    samples: usize,
    batch_size: usize,
    batch: usize,
) -> Error {
    let loader = builder.batch_size(batch_size).build().unwrap();
    let expected = in_batches(samples, batch_size);
    let (errors, took) = timed(|| {
        within(LIMIT, move || {
            let errors = [0, 1].map(|_| {
                let mut pass = loader.iter();
                let mut found = None;
                for (number, expected) in expected.iter().enumerate() {
                    let left = expected_left(&pass);
                    assert_eq!(left, loader.len() - number);
                    match pass.next().expect("as many turns as the loader said") {
                        Ok(batch) => assert_eq!(&ids(&batch), expected),
                        Err(error) => {
                            assert!(found.is_none(), "a second error: {error}");
                            assert_eq!(number, batch, "{error}");
                            found = Some(error);
                        }
                    }
                }
                assert!(pass.next().is_none());
                found.expect("an error")
            });
            let (_, took) = timed(|| drop(loader));
            assert!(took < Duration::from_secs(5), "shutdown took {took:?}");
            errors
        })
    });
    assert!(took < LIMIT);
    let [first, second] = errors;
    assert_eq!(text_without_worker(&first), text_without_worker(&second), "each pass the same");
    assert_eq!(first.batch(), Some(batch as u64), "{first}");
    first
}

fn expected_left<D: Dataset + 'static>(pass: &pinfeed::Iter<D>) -> usize {
    let (least, most) = pass.size_hint();
    assert_eq!(Some(least), most);
    least
}

/// Which turns are errors.
pub(crate) fn failed(turns: &[Result<Vec<usize>, String>]) -> Vec<usize> {
    (0..turns.len()).filter(|&turn| turns[turn].is_err()).collect()
}
