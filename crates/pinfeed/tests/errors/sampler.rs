//! Samplers that fail, panic, or break their word.

use std::ops::Range;

use pinfeed::{BoxError, DataLoader, Error, Generator, Indices, Sampler};

use crate::common::{LIMIT, counting, in_batches, within};
use crate::{WORKERS, failed, turns};

pub(crate) struct Sampled<F> {
    pub(crate) len: usize,
    pub(crate) indices: F,
}

impl<F, I> Sampler for Sampled<F>
where
    F: Fn() -> Result<I, BoxError> + Send + Sync,
    I: Indices + 'static,
{
    fn indices(&self, _: &mut Generator) -> Result<Box<dyn Indices>, BoxError> {
        Ok(Box::new((self.indices)()?))
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// Ten samples in batches of three by a sampler that says it has `len`, for all
/// settings. Two passes.
#[track_caller]
fn sampled<I: Indices + 'static>(
    len: usize,
    indices: impl Fn() -> Result<I, BoxError> + Clone + Send + Sync + 'static,
) -> Vec<Result<Vec<usize>, String>> {
    let mut seen = Vec::new();
    for workers in WORKERS {
        let loader = DataLoader::builder(counting(10))
            .batch_size(3)
            .sampler(Sampled { len, indices: indices.clone() })
            .num_workers(workers)
            .build()
            .unwrap();
        for _ in 0..2 {
            let pass = loader.iter();
            seen.push(within(LIMIT, move || turns(pass)));
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "the same for all settings: {seen:#?}");
    seen.swap_remove(0)
}

#[test]
fn a_sampler_that_fails() {
    let turns = sampled(10, || Err::<Range<usize>, _>("no indices today".into()));
    assert_eq!(turns.len(), 1, "the only item of the pass");
    assert!(turns[0].as_ref().unwrap_err().contains("no indices today"), "{turns:?}");
    // A panic in it is an error too.
    let panics = || -> Result<Range<usize>, BoxError> { panic!("no sampler") };
    let turns = sampled(10, panics);
    assert_eq!(turns.len(), 1);
    assert!(turns[0].as_ref().unwrap_err().contains("no sampler"), "{turns:?}");
}

#[test]
fn a_sampler_that_panics_on_the_way() {
    let turns =
        sampled(10, || Ok((0..10).inspect(|&index| assert_ne!(index, 5, "no more indices"))));
    assert_eq!(turns[0], Ok(vec![0, 1, 2]));
    let text = turns[1].as_ref().unwrap_err();
    assert!(text.contains("sampler") && text.contains("panicked"), "{text}");
    assert_eq!(turns.len(), 2, "it is not asked again: {turns:?}");
}

#[test]
fn an_index_out_of_range() {
    for bad in [10, usize::MAX] {
        let turns = sampled(10, move || Ok((0..10).map(move |i| if i == 4 { bad } else { i })));
        assert_eq!(turns.len(), 4);
        assert_eq!(failed(&turns), [1], "the others are good: {turns:?}");
        let text = turns[1].as_ref().unwrap_err();
        assert!(text.contains(&bad.to_string()) && text.contains("10 samples"), "{text}");
    }
}

#[test]
fn a_sampler_that_ends_early() {
    for (gives, good) in [(0, 0), (3, 1), (7, 2), (9, 3)] {
        let turns = sampled(10, move || Ok(0..gives));
        // Never silently short: the samples that did not come are an error.
        assert_eq!(failed(&turns), [good], "{turns:?}");
        assert_eq!(
            turns[..good].to_vec(),
            in_batches(10, 3)[..good].iter().cloned().map(Ok).collect::<Vec<_>>()
        );
        let text = turns[good].as_ref().unwrap_err();
        assert!(text.contains("10") && text.contains(&gives.to_string()), "{text}");
    }
}

/// The loader's length, the iterator's and what comes agree, or there is an
/// error that says why not.
#[test]
fn a_sampler_that_gives_more() {
    for workers in WORKERS {
        let indices = || Ok((0..10).chain(0..10));
        let loader = DataLoader::builder(counting(10))
            .batch_size(3)
            .sampler(Sampled { len: 10, indices })
            .num_workers(workers)
            .build()
            .unwrap();
        let turns = turns(&loader);
        assert!(
            turns.len() == loader.len() || turns.iter().any(Result::is_err),
            "{} batches of a loader of {}, and no word of it",
            turns.len(),
            loader.len()
        );
    }
}

/// More than was asked for at a time is not dropped in silence.
struct Generous(Range<usize>);

impl Indices for Generous {
    fn take_into(&mut self, count: usize, out: &mut Vec<usize>) {
        out.extend(self.0.by_ref().take(count + 1));
    }
}

#[test]
fn a_sampler_that_gives_more_at_a_time() {
    let turns = sampled(10, || Ok(Generous(0..10)));
    let got: Vec<usize> =
        turns.iter().filter_map(|turn| turn.as_ref().ok()).flatten().copied().collect();
    assert!(
        !failed(&turns).is_empty() || got == (0..10).collect::<Vec<_>>(),
        "samples are missing, and no error: {turns:?}"
    );
}

/// The worker that carried the ticket has nothing to do with it.
#[test]
fn no_worker_is_to_blame() {
    for workers in WORKERS {
        let loader = DataLoader::builder(counting(10))
            .batch_size(3)
            .sampler(Sampled { len: 10, indices: || Ok((0..10).map(|i| i * 2)) })
            .num_workers(workers)
            .build()
            .unwrap();
        let errors: Vec<Error> = loader.iter().filter_map(Result::err).collect();
        assert_eq!(
            errors.iter().map(Error::batch).collect::<Vec<_>>(),
            [Some(1), Some(2), Some(3)]
        );
        for error in errors {
            assert_eq!(error.worker(), None, "{error}");
        }
    }
}
