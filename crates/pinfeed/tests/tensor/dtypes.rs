//! Each dtype goes in and comes out again; what does not fit is an error.

use half::{bf16, f16};
use pinfeed::{DType, Element, Tensor};

use crate::EMPTY;

fn round_trip<T: Element>(values: [T; 6]) {
    let made = Tensor::from_vec(values.to_vec(), &[2, 3]).unwrap();
    assert_eq!(made.dtype(), T::DTYPE);
    assert_eq!(made.shape(), [2, 3]);
    assert_eq!((made.ndim(), made.numel()), (2, 6));
    assert_eq!(made.nbytes(), 6 * size_of::<T>());
    assert_eq!(made.bytes().len(), made.nbytes());
    assert_eq!(made.as_slice::<T>().unwrap(), values);
    assert_eq!(made.to_vec::<T>().unwrap(), values);

    let flat = Tensor::from(values.to_vec());
    assert_eq!(flat.shape(), [6]);
    assert_eq!(flat.reshape(&[2, 3]).unwrap(), made);

    for value in values {
        let scalar = Tensor::scalar(value);
        assert_eq!((scalar.ndim(), scalar.numel()), (0, 1));
        assert_eq!(scalar.item::<T>().unwrap(), value);
        let full = Tensor::full(&[3, 1], value).unwrap();
        assert_eq!(full.as_slice::<T>().unwrap(), [value; 3]);
        assert_eq!(full.dtype(), T::DTYPE);
    }

    let zeros = Tensor::zeros(T::DTYPE, &[2, 3]).unwrap();
    assert_eq!(zeros.as_slice::<T>().unwrap(), [T::default(); 6]);
    assert_eq!(zeros == made, values == [T::default(); 6]);

    for shape in EMPTY {
        for empty in [
            Tensor::zeros(T::DTYPE, shape),
            Tensor::full(shape, values[0]),
            Tensor::from_vec(Vec::<T>::new(), shape),
        ] {
            let empty = empty.unwrap();
            assert_eq!((empty.shape(), empty.dtype()), (shape, T::DTYPE));
            assert_eq!((empty.numel(), empty.nbytes()), (0, 0));
            assert!(empty.as_slice::<T>().unwrap().is_empty());
            assert!(empty.item::<T>().is_err());
        }
    }
}

#[test]
fn every_dtype() {
    round_trip([0u8, 1, 2, 127, 128, u8::MAX]);
    round_trip([0i8, 1, -1, 2, i8::MIN, i8::MAX]);
    round_trip([0u16, 1, 2, 3, 256, u16::MAX]);
    round_trip([0i16, 1, -1, 256, i16::MIN, i16::MAX]);
    round_trip([0u32, 1, 2, 3, 1 << 16, u32::MAX]);
    round_trip([0i32, 1, -1, 1 << 16, i32::MIN, i32::MAX]);
    round_trip([0u64, 1, 2, 3, 1 << 32, u64::MAX]);
    round_trip([0i64, 1, -1, 1 << 32, i64::MIN, i64::MAX]);
    round_trip([0.0, 1.0, -1.5, 65504.0, 1e-7, 2.0].map(f16::from_f32));
    round_trip([0.0, 1.0, -1.5, 3e38, 1e-38, 2.0].map(bf16::from_f32));
    round_trip([0.0f32, 1.0, -1.5, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY]);
    round_trip([0.0f64, 1.0, -1.5, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY]);
    round_trip([false, true, true, false, true, false]);
}

#[test]
fn a_vector_is_not_copied() {
    let values = vec![1.5f32; 1000];
    let address = values.as_ptr();
    let made = Tensor::from_vec(values, &[10, 100]).unwrap();
    assert_eq!(made.as_slice::<f32>().unwrap().as_ptr(), address);
    assert_eq!(made.clone().as_slice::<f32>().unwrap().as_ptr(), address);

    let values = vec![1i64; 10];
    let address = values.as_ptr();
    assert_eq!(Tensor::from(values).as_slice::<i64>().unwrap().as_ptr(), address);
}

#[test]
fn a_wrong_count_is_named() {
    for count in [0, 5, 7] {
        let error = Tensor::from_vec(vec![0u8; count], &[2, 3]).unwrap_err().to_string();
        assert!(error.contains(&format!("{count} values of u8")), "{error}");
        assert!(error.contains("[2, 3], which has 6"), "{error}");
    }
    // No dimensions is one element, not none.
    assert!(Tensor::from_vec(Vec::<u8>::new(), &[]).is_err());
    assert_eq!(Tensor::from_vec(vec![3u8], &[]).unwrap(), Tensor::scalar(3u8));
}

#[test]
fn another_dtype_is_refused() {
    let bytes = Tensor::from(vec![0u8; 8]);
    let error = bytes.as_slice::<i64>().unwrap_err().to_string();
    assert!(error.contains("asked for i64 of a tensor of u8"), "{error}");
    // Of the same size, even where every value would be one.
    assert!(bytes.as_slice::<i8>().is_err());
    assert!(bytes.as_slice::<bool>().is_err());
    assert!(bytes.to_vec::<f32>().is_err());
    assert!(Tensor::scalar(1i32).item::<u32>().is_err());
    assert!(Tensor::scalar(f16::ONE).item::<bf16>().is_err());
}

#[test]
fn a_shape_that_overflows_is_an_error() {
    let half = usize::MAX / 2 + 1;
    for shape in [&[usize::MAX, 2][..], &[half, 2], &[half, half, 4], &[usize::MAX]] {
        assert!(Tensor::zeros(DType::F64, shape).is_err(), "{shape:?}");
        assert!(Tensor::full(shape, 1u8).is_err(), "{shape:?}");
        // Products that wrap to the number of values there is.
        assert!(Tensor::from_vec(Vec::<u8>::new(), shape).is_err(), "{shape:?}");
        assert!(Tensor::from(vec![1u8]).reshape(shape).is_err(), "{shape:?}");
    }
    // More than an object may have, though it does not overflow.
    assert!(Tensor::zeros(DType::U8, &[isize::MAX as usize + 1]).is_err());
    // May be, but is not there.
    assert!(Tensor::zeros(DType::U8, &[isize::MAX as usize]).unwrap_err().is_out_of_memory());
    // A zero makes it empty, however large the rest.
    let empty = Tensor::zeros(DType::F64, &[usize::MAX, 0, usize::MAX]).unwrap();
    assert_eq!(empty.numel(), 0);
    assert!(empty.get(usize::MAX - 1).unwrap().bytes().is_empty());
}

#[test]
fn equal_by_value() {
    let x = Tensor::from(vec![1.0f32, 0.0]);
    assert_eq!(x, Tensor::from(vec![1.0f32, -0.0]));
    assert_eq!(x, x.clone());
    assert_ne!(x, Tensor::from(vec![1.0f32, 2.0]));
    assert_ne!(x, Tensor::from(vec![1.0f64, 0.0]));
    assert_ne!(x, x.reshape(&[2, 1]).unwrap());
    assert_ne!(Tensor::from(vec![0u8, 1]), Tensor::from(vec![false, true]));
    assert_eq!(Tensor::zeros(DType::U8, &[2]).unwrap(), Tensor::from(vec![0u8; 2]));
    for nan in [
        Tensor::scalar(f32::NAN),
        Tensor::scalar(f64::NAN),
        Tensor::scalar(f16::NAN),
        Tensor::scalar(bf16::NAN),
    ] {
        assert_ne!(nan, nan.clone());
        assert_eq!(nan.bytes(), nan.clone().bytes());
    }
}
