//! Rows, ranges and shapes of tensors share their memory.

use pinfeed::{DType, Tensor};

fn counted(shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>() as i32;
    Tensor::from_vec((0..count).collect(), shape).unwrap()
}

#[test]
fn a_row() {
    let x = counted(&[2, 3, 4]);
    let row = x.get(1).unwrap();
    assert_eq!(row.shape(), [3, 4]);
    assert_eq!(row.to_vec::<i32>().unwrap(), (12..24).collect::<Vec<_>>());
    assert_eq!(row.bytes().as_ptr(), x.bytes()[48..].as_ptr());
    let element = row.get(2).unwrap().get(3).unwrap();
    assert_eq!(element.ndim(), 0);
    assert_eq!(element.item::<i32>().unwrap(), 23);
}

#[test]
fn some_rows() {
    let x = counted(&[5, 2]);
    let part = x.narrow(1, 3).unwrap();
    assert_eq!(part.shape(), [3, 2]);
    assert_eq!(part.as_slice::<i32>().unwrap(), [2, 3, 4, 5, 6, 7]);
    assert_eq!(part.bytes().as_ptr(), x.bytes()[8..].as_ptr());
    // A part of a part counts from the part's start.
    let part = part.narrow(1, 2).unwrap();
    assert_eq!(part.as_slice::<i32>().unwrap(), [4, 5, 6, 7]);
    assert_eq!(part.get(1).unwrap().as_slice::<i32>().unwrap(), [6, 7]);
    assert_eq!(x.narrow(0, 5).unwrap(), x);
    assert_eq!(x.narrow(5, 0).unwrap().shape(), [0, 2]);
    assert_eq!(x.narrow(5, 0).unwrap().as_slice::<i32>().unwrap(), [0i32; 0]);
}

#[test]
fn rows_outlive_the_tensor() {
    let row = counted(&[2, 3]).get(1).unwrap();
    assert_eq!(row.as_slice::<i32>().unwrap(), [3, 4, 5]);
}

#[test]
fn rows_that_are_not_there() {
    let x = counted(&[5, 2]);
    let error = x.get(5).unwrap_err().to_string();
    assert!(error.contains("row 5") && error.contains("has 5 rows"), "{error}");
    assert!(x.narrow(4, 2).is_err());
    assert!(x.narrow(6, 0).is_err());
    assert!(x.narrow(usize::MAX, 2).is_err());
    assert!(x.narrow(2, usize::MAX).is_err());
    let scalar = Tensor::scalar(1u8);
    assert!(scalar.get(0).unwrap_err().to_string().contains("scalar"));
    assert!(scalar.narrow(0, 0).is_err());
    assert!(Tensor::zeros(DType::F32, &[0, 5]).unwrap().get(0).is_err());
}

#[test]
fn rows_without_elements() {
    let x = Tensor::zeros(DType::I64, &[3, 0, 4]).unwrap();
    assert_eq!(x.get(2).unwrap().shape(), [0, 4]);
    assert_eq!(x.narrow(1, 2).unwrap().shape(), [2, 0, 4]);
    assert!(x.get(3).is_err());
    let x = Tensor::zeros(DType::I64, &[0, 5]).unwrap();
    assert_eq!(x.narrow(0, 0).unwrap(), x);
    assert_eq!(x.reshape(&[7, 0]).unwrap().get(6).unwrap().shape(), [0]);
}

#[test]
fn another_shape() {
    let x = counted(&[2, 6]);
    let y = x.reshape(&[3, 2, 2]).unwrap();
    assert_eq!(y.shape(), [3, 2, 2]);
    assert_eq!(y.as_slice::<i32>().unwrap().as_ptr(), x.as_slice::<i32>().unwrap().as_ptr());
    assert_eq!(y.as_slice::<i32>().unwrap(), x.as_slice::<i32>().unwrap());
    let error = x.reshape(&[5]).unwrap_err().to_string();
    assert!(error.contains("12 elements") && error.contains("has 5"), "{error}");
    assert_eq!(counted(&[1, 1]).reshape(&[]).unwrap().item::<i32>().unwrap(), 0);
    assert!(counted(&[2]).reshape(&[]).is_err());
    // A part's shape can change as well.
    assert_eq!(x.get(1).unwrap().reshape(&[2, 3]).unwrap().get(1).unwrap().shape(), [3]);
}
