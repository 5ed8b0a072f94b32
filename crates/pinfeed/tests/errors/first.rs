//! Errors before any sample has shown the layout.

use pinfeed::DataLoader;

use crate::WORKERS;
use crate::common::{LIMIT, check_rich, samples, within, write_rich};

/// The first samples fail: `bad` of them. Then nothing is known of the layout
/// for as many batches.
#[test]
fn errors_before_the_first_sample() {
    for workers in WORKERS {
        for batch_size in [1, 2, 4] {
            for bad in [1, 3, 4, 5, 12, 20] {
                let data = samples(20, move |index, row, _| {
                    if index < bad {
                        return Err(format!("{index} is bad").into());
                    }
                    write_rich(index, 3, row)
                });
                let loader = DataLoader::builder(data)
                    .batch_size(batch_size)
                    .num_workers(workers)
                    .build()
                    .unwrap();
                within(LIMIT, move || {
                    for _ in 0..2 {
                        let passed: Vec<_> = loader.iter().collect();
                        assert_eq!(passed.len(), 20 / batch_size);
                        for (number, turn) in passed.iter().enumerate() {
                            let first = number * batch_size;
                            match turn {
                                Ok(batch) => {
                                    let expected: Vec<_> = (first..first + batch_size).collect();
                                    assert_eq!(check_rich(batch, 3), expected);
                                    assert!(first >= bad);
                                }
                                Err(error) => {
                                    assert!(first < bad, "{error}");
                                    assert_eq!(error.index(), Some(first), "{error}");
                                    assert_eq!(error.batch(), Some(number as u64));
                                }
                            }
                        }
                    }
                });
            }
        }
    }
}

/// Only the last sample of the first batch can be read: it shows the layout,
/// for a batch that is an error all the same.
#[test]
fn the_only_good_sample_is_the_last() {
    for workers in WORKERS {
        let data = samples(16, |index, row, _| {
            if index < 7 {
                return Err("bad".into());
            }
            write_rich(index, 2, row)
        });
        let loader = DataLoader::builder(data).batch_size(8).num_workers(workers).build().unwrap();
        let mut pass = loader.iter();
        assert_eq!(pass.next().unwrap().unwrap_err().index(), Some(0));
        assert_eq!(check_rich(&pass.next().unwrap().unwrap(), 2), (8..16).collect::<Vec<_>>());
    }
}
