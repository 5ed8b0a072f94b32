//! Memory that can not be had.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinfeed::mem::{Block, HostAlloc};
use pinfeed::{DataLoader, PinMemory};

use crate::WORKERS;
use crate::common::{LIMIT, samples, within};

/// An allocator that panics, or has nothing, from the third block on.
#[derive(Debug)]
struct Failing {
    panics: bool,
    given: AtomicUsize,
}

impl HostAlloc for Failing {
    fn alloc(&self, bytes: usize) -> pinfeed::mem::Result<Block> {
        if self.given.fetch_add(1, Ordering::SeqCst) < 2 {
            return Block::zeroed(bytes);
        }
        assert!(!self.panics, "the allocator panics");
        Err(pinfeed::mem::Error::no_memory(bytes, io::ErrorKind::OutOfMemory.into()))
    }

    fn locks(&self) -> bool {
        false
    }
}

/// No memory for a batch is that batch's error.
#[test]
fn an_allocator_that_fails() {
    for panics in [false, true] {
        for workers in WORKERS {
            let alloc = Arc::new(Failing { panics, given: AtomicUsize::new(0) });
            // Too large for the small slot: one block a batch.
            let data = samples(8, |index, row, _| {
                row.tensor::<i64>(&[20_000])?.fill(index as i64);
                Ok(())
            });
            let loader = DataLoader::builder(data)
                .num_workers(workers)
                .pin_memory(PinMemory::Alloc(alloc))
                .build()
                .unwrap();
            within(LIMIT, move || {
                let mut kept = Vec::new();
                let mut errors = 0;
                for batch in &loader {
                    match batch {
                        Ok(batch) => kept.push(batch),
                        Err(error) => {
                            errors += 1;
                            assert!(error.is_out_of_memory() || error.is_panic(), "{error}");
                            assert!(error.batch().is_some());
                        }
                    }
                }
                assert_eq!((kept.len(), errors), (2, 6));
                let values = kept.iter().map(|batch| batch.tensor_at(0).unwrap());
                let mut values: Vec<i64> =
                    values.map(|tensor| tensor.as_slice::<i64>().unwrap()[19_999]).collect();
                values.sort_unstable();
                values.dedup();
                assert_eq!(values.len(), 2);
            });
        }
    }
}
