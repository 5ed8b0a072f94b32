//! Batches of other layouts than the one before, and of next to nothing.

use pinfeed::{Batch, BatchField, BoxError, DataLoader, Element, PinMemory, Result, Row};

use crate::WORKERS;
use crate::common::{LIMIT, check_rich, ids, may_lock, samples, within, write_rich};

/// Every batch another shape: each is laid out as its samples are, strings
/// included.
#[test]
fn layouts_alternate() {
    // Floats of the samples of each batch, over and over.
    for shapes in [&[3usize, 4][..], &[0, 5], &[2000, 1, 20_000], &[1, 1, 2]] {
        for workers in WORKERS {
            for pin_memory in [PinMemory::Off, PinMemory::PageLock] {
                if matches!(pin_memory, PinMemory::PageLock) && !may_lock(8 << 20) {
                    continue;
                }
                let data = samples(31, |index, row, _| {
                    write_rich(index, shapes[index / 3 % shapes.len()], row)
                });
                let loader = DataLoader::builder(data)
                    .batch_size(3)
                    .num_workers(workers)
                    .pin_memory(pin_memory)
                    .build()
                    .unwrap();
                within(LIMIT, move || {
                    for _ in 0..3 {
                        let mut count = 0;
                        for (number, batch) in loader.iter().enumerate() {
                            let batch = batch.unwrap();
                            let floats = shapes[number % shapes.len()];
                            let first = number * 3;
                            let expected: Vec<_> = (first..(first + 3).min(31)).collect();
                            assert_eq!(check_rich(&batch, floats), expected);
                            count += 1;
                        }
                        assert_eq!(count, 11);
                        let memory = loader.memory();
                        assert_eq!((memory.slab.in_use, memory.small.in_use), (0, 0));
                    }
                });
            }
        }
    }
}

/// Fields come and go, and change their names and kinds.
#[test]
fn fields_alternate() {
    for workers in WORKERS {
        let data = samples(24, |index, row, _| {
            row.put(index as i64)?;
            match index / 3 % 4 {
                0 => row.named("word").put_text(&format!("<{index}>")),
                1 => row.named("word").put_bytes(&[index as u8; 3]),
                2 => {
                    row.named("word").put(index as u8)?;
                    row.put_text("more");
                }
                _ => {}
            }
            Ok(())
        });
        let loader = DataLoader::builder(data).batch_size(3).num_workers(workers).build().unwrap();
        for (number, batch) in loader.iter().enumerate() {
            let batch = batch.unwrap();
            let first = number * 3;
            assert_eq!(ids(&batch), [first, first + 1, first + 2]);
            match number % 4 {
                0 => {
                    let BatchField::Text(text) = batch.field("word").unwrap() else { panic!() };
                    assert_eq!(text[2], format!("<{}>", first + 2));
                }
                1 => {
                    let bytes = batch.field("word").unwrap();
                    let rows = [0, 1, 2].map(|row| vec![(first + row) as u8; 3]);
                    assert_eq!(bytes, BatchField::Bytes(rows.to_vec()));
                }
                2 => {
                    let word = batch.tensor("word").unwrap().to_vec::<u8>().unwrap();
                    assert_eq!(word, [first as u8, first as u8 + 1, first as u8 + 2]);
                    let more = BatchField::Text(vec!["more".to_owned(); 3]);
                    assert_eq!(batch.field_at(2).unwrap(), more);
                }
                _ => assert_eq!(batch.fields().len(), 1),
            }
        }
    }
}

#[test]
fn samples_without_fields() {
    for workers in WORKERS {
        for pin_memory in [PinMemory::Off, PinMemory::On, PinMemory::PageLock] {
            let loader = DataLoader::builder(samples(7, |_, _, _| Ok(())))
                .batch_size(3)
                .num_workers(workers)
                .pin_memory(pin_memory)
                .build()
                .unwrap();
            within(LIMIT, move || {
                let batches: Vec<Batch> = loader.iter().collect::<Result<_>>().unwrap();
                assert_eq!(batches.iter().map(Batch::len).collect::<Vec<_>>(), [3, 3, 1]);
                for batch in batches {
                    assert_eq!((batch.fields().len(), batch.slot_bytes()), (0, 0));
                    assert!(!batch.is_pinned() && !batch.is_os_locked());
                    assert_eq!(batch.pinning(), Default::default());
                }
            });
        }
    }
}

/// BO-02: fields without elements, of every dtype, beside others and alone.
#[test]
fn bo_02_fields_without_elements() {
    fn empty<T: Element>(row: &mut Row<'_>, shape: &[usize]) -> Result<(), BoxError> {
        assert!(row.tensor::<T>(shape)?.is_empty());
        Ok(())
    }
    for workers in WORKERS {
        for pin_memory in [PinMemory::Off, PinMemory::On, PinMemory::PageLock] {
            for alone in [false, true] {
                let data = samples(10, move |_, row, _| {
                    if !alone {
                        row.tensor::<f32>(&[3, 16, 16])?.fill(1.0);
                    }
                    empty::<f32>(row, &[0, 4])?;
                    empty::<u8>(row, &[50, 0])?;
                    empty::<i64>(row, &[3, 0, 4])?;
                    empty::<f64>(row, &[0])?;
                    empty::<bool>(row, &[2, 0])?;
                    Ok(row.put_slice::<i16>(&[0], &[])?)
                });
                let loader = DataLoader::builder(data)
                    .batch_size(4)
                    .num_workers(workers)
                    .pin_memory(pin_memory.clone())
                    .build()
                    .unwrap();
                let mut rows = Vec::new();
                for batch in &loader {
                    let batch = batch.unwrap();
                    let n = batch.len();
                    rows.push(n);
                    let tensors = batch.tensors();
                    let tensors = &tensors[usize::from(!alone)..];
                    let shapes: Vec<_> =
                        tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
                    let expected: [&[usize]; 6] =
                        [&[n, 0, 4], &[n, 50, 0], &[n, 3, 0, 4], &[n, 0], &[n, 2, 0], &[n, 0]];
                    assert_eq!(shapes, expected);
                    for tensor in tensors {
                        assert!(!tensor.is_pinned() && !tensor.is_os_locked());
                        assert_eq!(tensor.numel(), 0);
                    }
                }
                assert_eq!(rows, [4, 4, 2]);
            }
        }
    }
}
