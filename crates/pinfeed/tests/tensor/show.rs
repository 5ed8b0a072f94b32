//! Tensors as text.

use half::{bf16, f16};
use pinfeed::{DType, Element, Tensor};

fn shown<T: Element>(values: Vec<T>, shape: &[usize]) -> String {
    Tensor::from_vec(values, shape).unwrap().to_string()
}

#[test]
fn debug_is_short() {
    let x = Tensor::zeros(DType::F32, &[2, 3]).unwrap();
    assert_eq!(format!("{x:?}"), "Tensor(f32 [2, 3])");
    assert_eq!(format!("{:?}", Tensor::scalar(1u8)), "Tensor(u8)");
    match x.page_lock() {
        Ok(locked) => assert_eq!(format!("{locked:?}"), "Tensor(f32 [2, 3], os-locked)"),
        Err(error) => eprintln!("skipped: {error}"),
    }
}

#[test]
fn scalars() {
    assert_eq!(Tensor::scalar(7i64).to_string(), "tensor(7, dtype=i64)");
    assert_eq!(Tensor::scalar(0.5f32).to_string(), "tensor(0.5000, dtype=f32)");
    assert_eq!(Tensor::scalar(true).to_string(), "tensor(true, dtype=bool)");
}

#[test]
fn integers_are_aligned() {
    assert_eq!(shown(vec![1u8, 20, 255], &[3]), "tensor([  1,  20, 255], dtype=u8)");
    assert_eq!(
        shown(vec![1i16, -20, 300, 4], &[2, 2]),
        "tensor([[  1, -20],\n        [300,   4]], dtype=i16)"
    );
    assert_eq!(shown(vec![u64::MAX], &[1, 1, 1]), "tensor([[[18446744073709551615]]], dtype=u64)");
    assert_eq!(
        shown(vec![true, false], &[2, 1]),
        "tensor([[ true],\n        [false]], dtype=bool)"
    );
}

#[test]
fn floats() {
    assert_eq!(shown(vec![1.0f32, 2.0, -3.0], &[3]), "tensor([ 1.,  2., -3.], dtype=f32)");
    assert_eq!(shown(vec![1.0f64, 2.5], &[2]), "tensor([1.0000, 2.5000], dtype=f64)");
    assert_eq!(
        shown(vec![1.0f32, f32::NAN, f32::INFINITY, f32::NEG_INFINITY], &[4]),
        "tensor([  1.,  nan,  inf, -inf], dtype=f32)"
    );
    assert_eq!(
        shown(vec![1e-5f32, -2.0, 0.0], &[3]),
        "tensor([ 1.0000e-05, -2.0000e+00,  0.0000e+00], dtype=f32)"
    );
    assert_eq!(shown(vec![1e8f64, 1e120], &[2]), "tensor([ 1.0000e+08, 1.0000e+120], dtype=f64)");
    let halves = [0.5f32, 1.25];
    assert_eq!(
        shown(halves.map(f16::from_f32).to_vec(), &[2]),
        "tensor([0.5000, 1.2500], dtype=f16)"
    );
    assert_eq!(
        shown(halves.map(bf16::from_f32).to_vec(), &[2]),
        "tensor([0.5000, 1.2500], dtype=bf16)"
    );
}

#[test]
fn matrices_have_lines_between() {
    assert_eq!(
        shown((0..8u8).collect(), &[2, 2, 2]),
        "\
tensor([[[0, 1],
         [2, 3]],

        [[4, 5],
         [6, 7]]], dtype=u8)"
    );
}

#[test]
fn long_rows_go_on_below() {
    let text = shown((100..140i32).collect(), &[40]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
    assert!(lines[0].ends_with("112, 113,"), "{text}");
    assert!(lines[1].starts_with("        114, 115,"), "{text}");
}

#[test]
fn the_middle_is_left_out() {
    // A thousand elements are shown, a thousand and one are not.
    assert!(!shown(vec![1u8; 1000], &[1000]).contains("..."));
    assert_eq!(
        shown((0..1001i32).collect(), &[1001]),
        "tensor([   0,    1,    2, ...,  998,  999, 1000], dtype=i32)"
    );
    assert_eq!(
        shown((0..2000i32).collect(), &[200, 10]),
        "\
tensor([[   0,    1,    2, ...,    7,    8,    9],
        [  10,   11,   12, ...,   17,   18,   19],
        [  20,   21,   22, ...,   27,   28,   29],
        ...,
        [1970, 1971, 1972, ..., 1977, 1978, 1979],
        [1980, 1981, 1982, ..., 1987, 1988, 1989],
        [1990, 1991, 1992, ..., 1997, 1998, 1999]], dtype=i32)"
    );
    // A short dimension stays whole.
    let text = shown(vec![0u8; 3 * 400], &[3, 400]);
    assert_eq!(text.matches("...").count(), 3);
}

#[test]
fn nothing_to_show() {
    let x = Tensor::zeros(DType::F32, &[0, 5]).unwrap();
    assert_eq!(x.to_string(), "tensor([], shape=[0, 5], dtype=f32)");
    let x = Tensor::zeros(DType::I64, &[3, 0, 4]).unwrap();
    assert_eq!(x.to_string(), "tensor([], shape=[3, 0, 4], dtype=i64)");
}

#[test]
fn too_much_to_show() {
    // Six of every dimension would still be 46656 elements.
    let x = Tensor::zeros(DType::U8, &[6; 6]).unwrap();
    assert_eq!(x.to_string(), "tensor(..., shape=[6, 6, 6, 6, 6, 6], dtype=u8)");
    // No stack is deep enough for any number of brackets.
    let x = Tensor::scalar(1u8).reshape(&[1; 100_000]).unwrap();
    assert!(x.to_string().starts_with("tensor(..., shape=[1, 1,"));
}
