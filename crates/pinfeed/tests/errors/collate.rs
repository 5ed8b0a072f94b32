//! Collate functions that fail, and what they are given.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pinfeed::{BatchMut, BoxError, DType, DataLoader, SampleBuf, Spec};

use crate::cause::{Http, http};
use crate::common::{
    all_ids, counting, eventually, failing, in_batches, sleeping, text_without_worker,
};
use crate::{WORKERS, only_error};

type CollateFn = fn(&[SampleBuf], &mut BatchMut<'_>) -> Result<(), BoxError>;

pub(crate) fn stack(samples: &[SampleBuf], batch: &mut BatchMut<'_>) -> Result<(), BoxError> {
    batch.allocate(&Spec::new().unnamed(DType::I64, &[samples.len()])?)?;
    for (cell, sample) in batch.tensor_mut::<i64>(0)?.iter_mut().zip(samples) {
        let field = sample.as_ref().get(0).ok_or("no field")?;
        *cell = field.as_slice::<i64>()?[0];
    }
    Ok(())
}

pub(crate) fn has(samples: &[SampleBuf], index: i64) -> bool {
    let first =
        |sample: &SampleBuf| sample.as_ref().get(0)?.as_slice::<i64>().ok()?.first().copied();
    samples.iter().any(|sample| first(sample) == Some(index))
}

#[test]
fn a_collate_that_fails() {
    let cases: [(&str, CollateFn); 6] = [
        ("the server said no", |samples, batch| {
            if has(samples, 7) { Err(http().into()) } else { stack(samples, batch) }
        }),
        ("panics with 7", |samples, batch| {
            assert!(!has(samples, 7), "panics with 7");
            stack(samples, batch)
        }),
        ("once", |samples, batch| {
            stack(samples, batch)?;
            if has(samples, 7) { stack(samples, batch) } else { Ok(()) }
        }),
        ("asked for as f32", |samples, batch| {
            stack(samples, batch)?;
            if has(samples, 7) {
                batch.tensor_mut::<f32>(0)?;
            }
            Ok(())
        }),
        ("allocate", |samples, batch| {
            if has(samples, 7) {
                batch.tensor_mut::<i64>(0)?;
            }
            stack(samples, batch)
        }),
        ("no field 1", |samples, batch| {
            stack(samples, batch)?;
            if has(samples, 7) { Ok(batch.push_text(1, "text")?) } else { Ok(()) }
        }),
    ];
    for (message, collate) in cases {
        let mut texts = BTreeSet::new();
        for workers in WORKERS {
            let builder = DataLoader::builder(counting(10)).num_workers(workers).collate(collate);
            let error = only_error(builder, 10, 3, 2);
            assert!(error.to_string().contains(message), "{error}");
            assert!(error.is_collate() || error.is_panic(), "{error}");
            assert_eq!(error.index(), None, "no sample is to blame: {error}");
            if message.contains("server") {
                assert_eq!(error.source().unwrap().downcast_ref::<Http>(), Some(&http()));
            }
            texts.insert(text_without_worker(&error));
        }
        assert_eq!(texts.len(), 1, "{texts:?}");
    }
}

/// A sample's error comes first: collate is not asked.
#[test]
fn a_collate_sees_whole_batches_only() {
    for workers in WORKERS {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let collate = move |samples: &[SampleBuf], batch: &mut BatchMut<'_>| {
            count.fetch_add(1, Ordering::SeqCst);
            assert_ne!(samples.len(), 2, "a batch that is not whole");
            stack(samples, batch)
        };
        let builder = DataLoader::builder(failing(10, 7, || "bad")).num_workers(workers);
        let error = only_error(builder.collate(collate), 10, 3, 2);
        assert_eq!(error.index(), Some(7));
        assert_eq!(asked.load(Ordering::SeqCst), 6, "three batches, two passes");
    }
}

/// What is left of a dropped iterator's batches is thrown away, not collated.
#[test]
fn a_collate_sees_no_batch_of_a_dropped_iterator_in_part() {
    for persistent in [false, true] {
        let parts = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&parts);
        let collate = move |samples: &[SampleBuf], batch: &mut BatchMut<'_>| {
            if samples.len() != 8 {
                seen.fetch_add(1, Ordering::SeqCst);
            }
            stack(samples, batch)
        };
        let loader = DataLoader::builder(sleeping(80, |_| Duration::from_micros(300)))
            .batch_size(8)
            .num_workers(2)
            .persistent_workers(persistent)
            .collate(collate)
            .build()
            .unwrap();
        for _ in 0..10 {
            let mut pass = loader.iter();
            pass.next().unwrap().unwrap();
        }
        drop(loader);
        // The loader's share goes with its last worker.
        eventually("the workers leave", || Arc::strong_count(&parts) == 1);
        assert_eq!(parts.load(Ordering::SeqCst), 0);
    }
}

/// Samples come to it in the order of their indices, whoever made them.
#[test]
fn a_collate_gets_samples_in_order() {
    for workers in WORKERS {
        let data = sleeping(40, |index| Duration::from_micros((index as u64 * 7 % 5) * 200));
        let loader = DataLoader::builder(data)
            .batch_size(10)
            .num_workers(workers)
            .collate(stack)
            .build()
            .unwrap();
        assert_eq!(all_ids(&loader), in_batches(40, 10));
    }
}
