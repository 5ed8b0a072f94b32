//! The system's lock and the driver's: what has one, and what asking for one
//! does.

use std::sync::{Mutex, MutexGuard};

use pinfeed::{DType, Tensor};
use pinfeed_mem::{lock_limit, locked_bytes, page_size};

use crate::EMPTY;

/// The kernel counts the process's locked bytes: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|e| e.into_inner())
}

/// May this process lock so many bytes? Says so if not.
#[expect(clippy::print_stderr, reason = "a test that skips says why")]
fn may_lock(bytes: usize) -> bool {
    let may = lock_limit().is_none_or(|limit| limit >= locked_bytes() + bytes as u64);
    if !may {
        eprintln!("skipped: this process may not lock {bytes} bytes (ulimit -l)");
    }
    may
}

fn address(tensor: &Tensor) -> *const u8 {
    tensor.bytes().as_ptr()
}

#[test]
fn locks_a_copy_until_it_is_dropped() {
    let _alone = alone();
    if !may_lock(3 * page_size()) {
        return;
    }
    let before = locked_bytes();
    let x = Tensor::from_vec((0..1000i64).collect(), &[10, 100]).unwrap();
    assert!(!x.is_os_locked() && !x.is_pinned());
    let locked = x.page_lock().unwrap();
    assert!(locked.is_os_locked());
    assert!(!locked.is_pinned(), "the system's lock is not the driver's");
    assert_eq!(locked, x);
    assert!(locked_bytes() >= before + 8000);
    // A row keeps all of it.
    let row = locked.get(3).unwrap();
    drop(locked);
    assert!(row.is_os_locked());
    assert!(locked_bytes() >= before + 8000);
    drop(row);
    assert_eq!(locked_bytes(), before);
}

/// BO-03: what is locked is not copied again, a part of it neither.
#[test]
fn locking_twice_does_nothing() {
    let _alone = alone();
    if !may_lock(4 << 20) {
        return;
    }
    let x = Tensor::zeros(DType::F32, &[1 << 10, 1 << 10]).unwrap().page_lock().unwrap();
    let held = locked_bytes();
    for view in
        [x.clone(), x.get(7).unwrap(), x.narrow(1, 1023).unwrap(), x.reshape(&[1 << 20]).unwrap()]
    {
        assert!(view.is_os_locked(), "{view:?}");
        let again = view.page_lock().unwrap();
        assert_eq!(address(&again), address(&view));
        assert_eq!(again.shape(), view.shape());
    }
    assert_eq!(locked_bytes(), held);
}

/// BO-02: nothing to lock is no error, and locks nothing.
#[test]
fn empty_tensors_are_never_locked() {
    let _alone = alone();
    let before = locked_bytes();
    for dtype in [DType::F32, DType::U8, DType::I64] {
        for shape in EMPTY {
            let x = Tensor::zeros(dtype, shape).unwrap();
            for same in [x.page_lock().unwrap(), x.pin_memory().unwrap()] {
                assert_eq!((same.dtype(), same.shape()), (dtype, shape));
                assert!(!same.is_pinned() && !same.is_os_locked());
            }
        }
    }
    let x = Tensor::zeros(DType::F32, &[0, 4]).unwrap();
    let kept: Vec<Tensor> = (0..10_000).map(|_| x.page_lock().unwrap()).collect();
    assert_eq!(locked_bytes(), before);
    drop(kept);
    // No rows of a locked tensor: no memory either.
    if may_lock(page_size()) {
        let locked = Tensor::zeros(DType::U8, &[5]).unwrap().page_lock().unwrap();
        assert!(locked.is_os_locked());
        assert!(!locked.narrow(2, 0).unwrap().is_os_locked());
    }
}

#[test]
fn a_lock_that_is_refused_says_why() {
    let _alone = alone();
    let Some(limit) = lock_limit() else {
        eprintln!("skipped: this process may lock as much as it likes");
        return;
    };
    let bytes = limit as usize + page_size();
    let error = Tensor::zeros(DType::U8, &[bytes]).unwrap().page_lock().unwrap_err();
    assert!(error.is_out_of_memory());
    assert!(error.to_string().contains("ulimit -l"), "{error}");
}

#[test]
fn no_driver_no_pinned_memory() {
    let x = Tensor::from(vec![1u8; 12]);
    let error = x.pin_memory().unwrap_err();
    assert!(error.is_out_of_memory());
    let error = error.to_string();
    assert!(error.contains("12 bytes") && error.contains("no CUDA support"), "{error}");
    assert!(error.contains("page_lock()"), "{error}");
}
