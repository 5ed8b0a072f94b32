//! Dropping an iterator, in every state: it waits for nobody, and the threads
//! leave at their next sample.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pinfeed::{BoxError, DataLoader, Dataset, Generator, Indices, Iter, Sampler};

use crate::common::{
    Gate, LIMIT, all_ids, among_others, counting, eventually, failing, gated, in_batches, samples,
    sleeping, timed, within,
};
use crate::{CREWS, crew};

/// A drop takes no longer, on a machine that is busy elsewhere.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Brings an iterator to some state and drops it; then the loader goes on, and
/// when it is dropped nothing of it is left.
#[track_caller]
fn dropped<D: Dataset + 'static>(
    data: impl Fn() -> D,
    bring: impl Fn(&mut Iter<Arc<D>>) + Clone + Send + 'static,
) {
    for threads in CREWS {
        for collects_after in [false, true] {
            let data = Arc::new(data());
            let builder = DataLoader::builder(Arc::clone(&data)).batch_size(4);
            let loader = crew(builder, threads).build().unwrap();
            let bring = bring.clone();
            within(LIMIT, move || {
                for _ in 0..3 {
                    let mut pass = loader.iter();
                    bring(&mut pass);
                    let ((), took) = timed(|| drop(pass));
                    assert!(took < AT_ONCE, "the drop took {took:?}");
                }
                if collects_after {
                    assert_eq!(loader.iter().count(), loader.len());
                }
                let ((), took) = timed(|| drop(loader));
                assert!(took < AT_ONCE, "the drop took {took:?}");
            });
            eventually("the workers leave", || Arc::strong_count(&data) == 1);
        }
    }
}

#[test]
fn fresh() {
    let _turn = among_others();
    dropped(|| counting(40), |_| {});
}

#[test]
fn after_a_batch() {
    let _turn = among_others();
    dropped(|| counting(40), |pass| drop(pass.next().unwrap().unwrap()));
}

#[test]
fn in_the_middle_of_slow_samples() {
    let _turn = among_others();
    let data = || sleeping(40, |_| Duration::from_millis(1));
    dropped(data, |pass| drop(pass.next().unwrap().unwrap()));
}

#[test]
fn after_an_error() {
    let _turn = among_others();
    dropped(
        || failing(40, 5, || "bad"),
        |pass| {
            let second = pass.nth(1).unwrap();
            assert_eq!(second.unwrap_err().index(), Some(5));
        },
    );
}

#[test]
fn after_a_panic() {
    let _turn = among_others();
    let data = || {
        samples(40, |index, row, _| {
            assert_ne!(index, 5, "a bad sample");
            Ok(row.put(index as i64)?)
        })
    };
    dropped(data, |pass| assert!(pass.nth(1).unwrap().unwrap_err().is_panic()));
}

#[test]
fn after_the_last_batch() {
    let _turn = among_others();
    dropped(|| counting(40), |pass| assert_eq!(pass.take(10).count(), 10));
}

#[test]
fn after_the_end() {
    let _turn = among_others();
    dropped(|| counting(40), |pass| assert_eq!(pass.count(), 10));
}

struct NoIndices;

impl Sampler for NoIndices {
    fn indices(&self, _: &mut Generator) -> Result<Box<dyn Indices>, BoxError> {
        Err("no indices".into())
    }

    fn len(&self) -> usize {
        40
    }
}

#[test]
fn before_the_error_that_it_began_with() {
    let _turn = among_others();
    for threads in CREWS {
        let data = Arc::new(counting(40));
        let builder = DataLoader::builder(Arc::clone(&data)).sampler(NoIndices);
        let loader = crew(builder, threads).build().unwrap();
        for asked in [0, 1, 2] {
            let mut pass = loader.iter();
            let items = pass.by_ref().take(asked).collect::<Vec<_>>();
            assert!(items.iter().all(Result::is_err));
            assert_eq!(items.len(), asked.min(1));
        }
        drop(loader);
        eventually("the workers leave", || Arc::strong_count(&data) == 1);
    }
}

/// The threads are in a sample that does not end: the drop does not wait.
#[test]
fn while_the_workers_are_in_a_sample() {
    let _turn = among_others();
    for threads in [(1, false), (2, false), (2, true)] {
        for batch_size in [1, 4, 100] {
            let (gate, _opener) = Gate::closed();
            let data = Arc::new(gated(100, 0, &gate));
            let builder = DataLoader::builder(Arc::clone(&data)).batch_size(batch_size);
            let loader = crew(builder, threads).build().unwrap();
            let pass = loader.iter();
            gate.wait_for_arrivals(1);
            let ((), took) = timed(|| {
                within(LIMIT, || drop(pass));
                within(LIMIT, || drop(loader));
            });
            assert!(took < AT_ONCE, "the drop took {took:?}");
            assert_eq!(gate.passed(), 0);
            assert!(Arc::strong_count(&data) > 1, "a worker is still there");
            gate.open();
            eventually("the workers leave", || Arc::strong_count(&data) == 1);
        }
    }
}

/// After the drop each thread ends the sample it is in, and begins no other.
#[test]
fn threads_leave_at_their_next_sample() {
    let _turn = among_others();
    for threads in [(1, false), (2, false), (2, true)] {
        let begun = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&begun);
        let data = samples(100_000, move |index, row, _| {
            count.fetch_add(1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(1));
            Ok(row.put(index as i64)?)
        });
        let data = Arc::new(data);
        let builder = DataLoader::builder(Arc::clone(&data)).batch_size(50_000);
        let loader = crew(builder, threads).build().unwrap();
        let pass = loader.iter();
        eventually("samples are made", || begun.load(Ordering::SeqCst) >= 10);
        drop(pass);
        let before = begun.load(Ordering::SeqCst);
        drop(loader);
        eventually("the workers leave", || Arc::strong_count(&data) == 1);
        let more = begun.load(Ordering::SeqCst) - before;
        assert!(more <= threads.0, "{more} samples begun after the drop");
    }
}

/// A long sample can ask whether anybody still waits for it.
#[test]
fn a_long_sample_is_told() {
    let _turn = among_others();
    for threads in [(1, false), (2, false), (2, true)] {
        let waits = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&waits);
        let data = samples(20, move |index, row, cx| {
            if cx.epoch() == 0 {
                count.fetch_add(1, Ordering::SeqCst);
                while !cx.is_cancelled() {
                    thread::sleep(Duration::from_millis(1));
                }
                return Err("cancelled".into());
            }
            assert!(!cx.is_cancelled(), "another iterator's cancellation");
            Ok(row.put(index as i64)?)
        });
        let data = Arc::new(data);
        let builder = DataLoader::builder(Arc::clone(&data)).batch_size(2);
        let loader = crew(builder, threads).build().unwrap();
        let first = loader.iter();
        eventually("a sample waits", || waits.load(Ordering::SeqCst) > 0);
        let mut second = loader.iter();
        drop(first);
        within(LIMIT, move || {
            assert_eq!(all_ids(second.by_ref()), in_batches(20, 2));
            assert_eq!(all_ids(&loader), in_batches(20, 2));
        });
        eventually("the workers leave", || Arc::strong_count(&data) == 1);
    }
}
