//! BO-07: what is pinned, what is not, and what is said of it.

use pinfeed::{DataLoader, PinMemory, Pinning, Unpinned};

use crate::common::{alone, ids, in_batches, may_lock, samples, write_rich};
use crate::{CREWS, crew, warnings};

/// This version never asks a CUDA driver, so the answers are those of a
/// machine without one, wherever the test runs.
#[test]
fn bo_07_no_cuda() {
    let _alone = alone();
    for threads in CREWS {
        let data = samples(10, |index, row, _| Ok(row.put(index as i64)?));
        let builder = crew(DataLoader::builder(data), threads).batch_size(3);
        let loader = builder.pin_memory(true).build().unwrap();
        let mut warned = warnings(&loader);
        for _ in 0..3 {
            let mut rows = Vec::new();
            for batch in &loader {
                let batch = batch.unwrap();
                rows.push(ids(&batch));
                assert!(!batch.is_pinned() && !batch.is_os_locked());
                let tensor = batch.tensor_at(0).unwrap();
                assert!(!tensor.is_pinned() && !tensor.is_os_locked());
                let bytes = 8 * batch.len();
                let mut expected = Pinning::default();
                expected.total_bytes = bytes;
                expected.rest = vec![("0".to_owned(), bytes, Unpinned::NoCuda)];
                assert_eq!(batch.pinning(), expected);
                let error = tensor.pin_memory().unwrap_err();
                assert!(error.to_string().contains("CUDA"), "{error}");
            }
            assert_eq!(rows, in_batches(10, 3));
            warned = warnings(&loader);
        }
        assert_eq!(warned.len(), 1, "one warning per loader: {warned:?}");
        for part in ["pin_memory", "CUDA", "is_pinned()"] {
            assert!(warned[0].contains(part), "{warned:?}");
        }
    }
    // Another loader, another warning; and none where it was not asked for.
    let build = |pin_memory: bool| {
        let data = samples(10, |index, row, _| Ok(row.put(index as i64)?));
        DataLoader::builder(data).pin_memory(pin_memory).build().unwrap()
    };
    assert_eq!((build(true).warnings().len(), build(false).warnings().len()), (1, 0));
}

/// Every byte is accounted for: how it is locked, or why not.
#[test]
fn every_byte_is_accounted_for() {
    let _alone = alone();
    for threads in CREWS {
        for (pin_memory, reason) in [
            (PinMemory::Off, Unpinned::NotAsked),
            (PinMemory::On, Unpinned::NoCuda),
            (PinMemory::PageLock, Unpinned::OsLockOnly),
        ] {
            let locks = matches!(pin_memory, PinMemory::PageLock);
            if locks && !may_lock(4 << 20) {
                continue;
            }
            let data = samples(40, |index, row, _| write_rich(index, 5000, row));
            let builder = crew(DataLoader::builder(data), threads).batch_size(8);
            let loader = builder.pin_memory(pin_memory).build().unwrap();
            for batch in &loader {
                let batch = batch.unwrap();
                let ids = ids(&batch);
                let pinning = batch.pinning();
                let (labels, images) = (8 * ids.len(), 20_000 * ids.len());
                let text: usize = ids.iter().map(|id| id % 7).sum();
                let raw: usize = ids.iter().map(|id| id % 8).sum();
                assert_eq!(pinning.total_bytes, labels + images + text + raw);
                assert_eq!(pinning.pinned_bytes, 0);
                let os_locked = if locks { labels + images } else { 0 };
                assert_eq!(pinning.os_locked_bytes, os_locked);
                let rest = [
                    ("id".to_owned(), labels, reason),
                    ("text".to_owned(), text, Unpinned::NotATensor),
                    ("image".to_owned(), images, reason),
                    ("raw".to_owned(), raw, Unpinned::NotATensor),
                ];
                assert_eq!(pinning.rest, rest);
                assert_eq!((batch.is_os_locked(), batch.is_pinned()), (locks, false));
                for tensor in batch.tensors() {
                    assert_eq!((tensor.is_os_locked(), tensor.is_pinned()), (locks, false));
                }
            }
        }
    }
}
