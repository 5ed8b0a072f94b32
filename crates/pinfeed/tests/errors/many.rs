//! A `get_many` of one's own that fails, panics or does not do its work.

use pinfeed::{BoxError, Context, DType, DataLoader, Rows, Spec};

use crate::common::{Bad, LIMIT, Many, in_batches, within};
use crate::{WORKERS, failed, turns};

/// Runs ten samples in batches of three with this `get_many`, for all
/// settings; sample 7 is bad or not. Checks what must always be so, and gives
/// what came at each turn.
#[track_caller]
fn with_get_many<F>(bad: &[usize], get_many: F) -> Vec<Result<Vec<usize>, String>>
where
    F: Fn(&Bad, &[usize], &mut Rows<'_>, &mut Context) -> Result<(), BoxError>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let mut seen = Vec::new();
    for workers in WORKERS {
        for with_spec in [false, true] {
            let spec = Spec::new().unnamed(DType::I64, &[]).unwrap();
            let data = Many {
                len: 10,
                bad: Bad(bad.to_vec()),
                spec: with_spec.then_some(spec),
                get_many: get_many.clone(),
            };
            let loader =
                DataLoader::builder(data).batch_size(3).num_workers(workers).build().unwrap();
            for _ in 0..2 {
                let turns = within(LIMIT, {
                    let pass = loader.iter();
                    move || turns(pass)
                });
                assert_eq!(turns.len(), 4, "{turns:?}");
                for (turn, expected) in turns.iter().zip(in_batches(10, 3)) {
                    if let Ok(ids) = turn {
                        assert_eq!(ids, &expected, "rows that nobody wrote");
                    }
                }
                seen.push(turns);
            }
        }
    }
    let first = seen.swap_remove(0);
    for other in &seen {
        let ok = |turns: &[Result<_, String>]| turns.iter().map(Result::is_ok).collect::<Vec<_>>();
        assert_eq!(ok(other), ok(&first), "{other:?} {first:?}");
    }
    first
}

#[test]
fn get_many_by_column() {
    let turns = with_get_many(&[], |_, indices, rows, cx| {
        let spec = Spec::new().unnamed(DType::I64, &[])?;
        let Some(columns) = rows.columns(&spec) else {
            return rows.each(indices, cx, |index, row, _| Ok(row.put(index as i64)?));
        };
        for (cell, index) in columns[0].chunks_exact_mut(8).zip(indices) {
            cell.copy_from_slice(&(*index as i64).to_ne_bytes());
        }
        Ok(())
    });
    assert!(failed(&turns).is_empty(), "{turns:?}");
}

/// It fails with a column half filled: the loader finds the sample to blame.
#[test]
fn get_many_fails_in_a_column() {
    for panics in [false, true] {
        let turns = with_get_many(&[7], move |bad, indices, rows, cx| {
            let spec = Spec::new().unnamed(DType::I64, &[])?;
            let Some(columns) = rows.columns(&spec) else {
                return rows.each(indices, cx, |index, row, _| bad.get(index, row));
            };
            for (cell, index) in columns[0].chunks_exact_mut(8).zip(indices) {
                assert!(!panics || !bad.0.contains(index), "{index} panics");
                if bad.0.contains(index) {
                    return Err("somewhere in the column".into());
                }
                cell.copy_from_slice(&(*index as i64).to_ne_bytes());
            }
            Ok(())
        });
        assert_eq!(failed(&turns), [2]);
        let Err(text) = &turns[2] else { unreachable!() };
        assert!(text.contains("7 is bad") && text.contains("sample 7"), "{text}");
    }
}

/// It fails before it writes anything, though each sample can be had: the batch
/// is whole.
#[test]
fn get_many_fails_where_get_does_not() {
    let turns = with_get_many(&[], |_, _, _, _| Err("not many today".into()));
    assert!(failed(&turns).is_empty(), "{turns:?}");
    // Where one can not, that is the error.
    let turns = with_get_many(&[7], |_, _, _, _| Err("not many today".into()));
    assert_eq!(failed(&turns), [2]);
    assert!(turns[2].as_ref().unwrap_err().contains("7 is bad"), "{turns:?}");
}

#[test]
fn get_many_panics_in_a_row() {
    let turns = with_get_many(&[7], |bad, indices, rows, cx| {
        rows.each(indices, cx, |index, row, _| {
            assert!(!bad.0.contains(&index), "{index} panics");
            Ok(row.put(index as i64)?)
        })
    });
    assert_eq!(failed(&turns), [2]);
    assert!(turns[2].as_ref().unwrap_err().contains("7 panics"), "{turns:?}");
}

/// It says Ok, and has not written all rows: an error, never rows of an older
/// batch.
#[test]
fn get_many_writes_too_little() {
    // Nothing at all.
    let turns = with_get_many(&[], |_, _, _, _| Ok(()));
    assert_eq!(failed(&turns), [0, 1, 2, 3]);
    assert!(turns[0].as_ref().unwrap_err().contains("wrote 0 of"), "{turns:?}");
    // Without the last one, if there are several. (A worker may be given one
    // row at a time.)
    let turns = with_get_many_ok_or_not(|_, indices, rows, cx| {
        let some = &indices[..indices.len().div_ceil(2)];
        rows.each(some, cx, |index, row, _| Ok(row.put(index as i64)?))
    });
    assert_eq!(failed(&turns), [0, 1, 2]);
}

/// As `with_get_many` for `num_workers = 0`, where the rows are a batch's.
#[track_caller]
fn with_get_many_ok_or_not<F>(get_many: F) -> Vec<Result<Vec<usize>, String>>
where
    F: Fn(&Bad, &[usize], &mut Rows<'_>, &mut Context) -> Result<(), BoxError>
        + Send
        + Sync
        + 'static,
{
    let spec = Some(Spec::new().unnamed(DType::I64, &[]).unwrap());
    let data = Many { len: 10, bad: Bad(Vec::new()), spec, get_many };
    let turns = turns(DataLoader::builder(data).batch_size(3).build().unwrap());
    for (turn, expected) in turns.iter().zip(in_batches(10, 3)) {
        assert!(turn.as_ref().is_err() || turn.as_ref() == Ok(&expected), "{turn:?}");
    }
    turns
}

/// It drops the error of a sample and says Ok: the row was not written.
#[test]
fn get_many_swallows_an_error() {
    for sample in [7, 8, 9] {
        let turns = with_get_many(&[sample], |bad, indices, rows, cx| {
            let _ = rows.each(indices, cx, |index, row, _| bad.get(index, row));
            Ok(())
        });
        assert_eq!(failed(&turns), [sample / 3], "sample {sample}");
    }
}

/// It goes on after a sample's error: still an error.
#[test]
fn get_many_goes_on_after_an_error() {
    let turns = with_get_many(&[7], |bad, indices, rows, cx| {
        while rows.each(indices, cx, |index, row, _| bad.get(index, row)).is_err() {}
        Ok(())
    });
    assert_eq!(failed(&turns), [2]);
}

#[test]
fn get_many_with_other_indices() {
    // Too many: those beyond the rows are not asked for.
    let turns = with_get_many(&[], |_, indices, rows, cx| {
        let more = [indices, &[1000, 1001][..]].concat();
        rows.each(&more, cx, |index, row, _| Ok(row.put(index as i64)?))
    });
    assert!(failed(&turns).is_empty(), "{turns:?}");
}
