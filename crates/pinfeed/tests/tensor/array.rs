//! `ndarray` both ways: values and shape are the logical ones, whatever the
//! layout (BO-01: a transposed view was once copied in storage order).

use std::sync::Arc;

use ndarray::{Array, Array1, Array2, Array3, ArrayD, ArrayView2, Axis, IxDyn, ShapeBuilder, s};
use pinfeed::{BoxError, Context, DType, DataLoader, Dataset, PinMemory, Row, Sample, Tensor};

use crate::EMPTY;

fn counted(rows: usize, columns: usize) -> Array2<f32> {
    let values = (0..rows * columns).map(|i| i as f32).collect();
    Array2::from_shape_vec((rows, columns), values).unwrap()
}

/// The tensor has the array's shape and its elements in logical order.
fn assert_same(array: ArrayView2<'_, f32>, tensor: &Tensor) {
    assert_eq!(tensor.shape(), array.shape());
    let logical: Vec<f32> = array.iter().copied().collect();
    assert_eq!(tensor.as_slice::<f32>().unwrap(), logical);
    assert_eq!(tensor.view::<f32>().unwrap(), array.into_dyn());
}

#[test]
fn a_view_is_no_copy() {
    let x = Tensor::from_vec((0..24i64).collect(), &[2, 3, 4]).unwrap();
    let view = x.view::<i64>().unwrap();
    assert_eq!(view.shape(), [2, 3, 4]);
    assert_eq!(view[[1, 2, 3]], 23);
    assert_eq!(view.as_ptr(), x.as_slice::<i64>().unwrap().as_ptr());
    let row = x.get(1).unwrap();
    assert_eq!(row.view::<i64>().unwrap(), view.index_axis(Axis(0), 1));
    assert_eq!(row.view::<i64>().unwrap().as_ptr(), view.index_axis(Axis(0), 1).as_ptr());
    assert!(x.view::<f64>().is_err());
    assert_eq!(Tensor::scalar(3u8).view::<u8>().unwrap(), ndarray::arr0(3u8).into_dyn());
}

#[test]
fn standard_layout_is_no_copy() {
    let array = counted(3, 4);
    let (copy, address) = (array.clone(), array.as_ptr());
    let tensor = Tensor::from_array(array).unwrap();
    assert_same(copy.view(), &tensor);
    assert_eq!(tensor.as_slice::<f32>().unwrap().as_ptr(), address);

    // Rows cut out of it lie in one piece: kept with the rest of the vector.
    let array = copy.clone().slice_move(s![1..3, ..]);
    let address = array.as_ptr();
    let tensor = Tensor::from_array(array).unwrap();
    assert_same(copy.slice(s![1..3, ..]), &tensor);
    assert_eq!(tensor.as_slice::<f32>().unwrap().as_ptr(), address);

    // There and back.
    let array = ArrayD::from_shape_vec(IxDyn(&[2, 2]), vec![true, false, false, true]).unwrap();
    let tensor = Tensor::from_array(array.clone()).unwrap();
    assert_eq!(tensor.dtype(), DType::Bool);
    assert_eq!(tensor.view::<bool>().unwrap(), array);
}

#[test]
fn other_layouts_keep_their_order() {
    // BO-01's own case.
    let tensor = Tensor::from_array(counted(2, 5).reversed_axes()).unwrap();
    assert_eq!(tensor.shape(), [5, 2]);
    assert_eq!(
        tensor.as_slice::<f32>().unwrap(),
        [0.0, 5.0, 1.0, 6.0, 2.0, 7.0, 3.0, 8.0, 4.0, 9.0]
    );

    let base = counted(6, 8);
    let column_major = Array::from_shape_fn((6, 8).f(), |(i, j)| (i * 8 + j) as f32);
    assert_same(base.view(), &Tensor::from_array(column_major).unwrap());
    let mut reversed = base.clone();
    reversed.invert_axis(Axis(0));
    assert_same(base.slice(s![..;-1, ..]), &Tensor::from_array(reversed).unwrap());
    let strided = base.clone().slice_move(s![.., ..;2]);
    assert_same(base.slice(s![.., ..;2]), &Tensor::from_array(strided).unwrap());
    let both = base.clone().slice_move(s![..;-2, 1..;3]).reversed_axes();
    assert_same(base.slice(s![..;-2, 1..;3]).t(), &Tensor::from_array(both).unwrap());
}

#[test]
fn borrowed_arrays() {
    let base = counted(6, 8);
    for view in [
        base.view(),
        base.t(),
        base.slice(s![..;-1, ..]),
        base.slice(s![.., ..;2]),
        base.slice(s![2..4, ..]),
        base.slice(s![2..2, ..]),
    ] {
        assert_same(view, &Tensor::from_array(view).unwrap());
    }
    // Stride 0: a million elements of a thousand.
    let line = Array1::from_iter((0..1000).map(|i| i as f32));
    let square = line.broadcast((1000, 1000)).unwrap();
    assert_same(square, &Tensor::from_array(square).unwrap());
    assert_same(square.t(), &Tensor::from_array(square.t()).unwrap());
}

#[test]
fn channels_last() {
    let base =
        Array::from_shape_fn((2, 4, 4, 3), |(n, h, w, c)| (n * 48 + h * 12 + w * 3 + c) as u8);
    let channels_first = base.permuted_axes([0, 3, 1, 2]);
    let tensor = Tensor::from_array(channels_first.clone()).unwrap();
    assert_eq!(tensor.shape(), [2, 3, 4, 4]);
    assert_eq!(tensor.view::<u8>().unwrap(), channels_first.into_dyn());
}

#[test]
fn a_broadcast_that_memory_can_not_hold() {
    let one = ndarray::arr0(1u8);
    let huge = one.broadcast((1 << 31, 1 << 31)).unwrap();
    assert!(Tensor::from_array(huge).unwrap_err().is_out_of_memory());
    let one = ndarray::arr0(1f64);
    let huge = one.broadcast((1 << 31, 1 << 31)).unwrap();
    assert!(Tensor::from_array(huge).is_err());
}

#[test]
fn without_elements() {
    for shape in EMPTY {
        let tensor = Tensor::from_array(ArrayD::<f32>::zeros(shape)).unwrap();
        assert_eq!((tensor.shape(), tensor.numel()), (shape, 0));
        assert_eq!(tensor.view::<f32>().unwrap().shape(), shape);
    }
    // What is cut away stays unseen.
    let none = Array3::<i64>::ones((3, 2, 4)).slice_move(s![.., 2.., ..]);
    assert_eq!(Tensor::from_array(none).unwrap().shape(), [3, 0, 4]);
    // More rows of nothing than `ndarray` takes.
    let wide = Tensor::zeros(DType::U8, &[0, usize::MAX]).unwrap();
    assert!(wide.view::<u8>().is_err());
}

/// Samples that are views of a 2 by 5 array, or of a line of 2, each in another
/// layout.
struct Views(Array2<f32>, Array1<f32>);

impl Views {
    /// All have the shape 5 by 2.
    fn view(&self, index: usize) -> ArrayView2<'_, f32> {
        match index {
            0 => self.0.t(),
            1 => self.0.slice(s![..;-1, ..]).reversed_axes(),
            2 => self.0.slice(s![.., ..;-1]).reversed_axes(),
            // Stride 0.
            _ => self.1.broadcast((5, 2)).unwrap(),
        }
    }
}

impl Dataset for Views {
    fn len(&self) -> usize {
        4
    }

    fn get(&self, index: usize, row: &mut Row<'_>, _: &mut Context) -> Result<(), BoxError> {
        Ok(self.view(index).write(row)?)
    }
}

/// BO-01, by way of a loader: a view is a sample in its logical order,
/// wherever the batch lies.
#[test]
fn views_are_samples() {
    let mut memory = vec![PinMemory::Off];
    if pinfeed::mem::lock_limit().is_none_or(|limit| limit > 1 << 20) {
        memory.push(PinMemory::PageLock);
    } else {
        eprintln!("skipped: this process may lock no memory (ulimit -l)");
    }
    for memory in memory {
        let views = Arc::new(Views(counted(2, 5), Array1::from(vec![3.0, 8.0])));
        let loader =
            DataLoader::builder(Arc::clone(&views)).batch_size(2).pin_memory(memory).build();
        let mut seen = 0;
        for batch in &loader.unwrap() {
            let batch = batch.unwrap().tensor_at(0).unwrap();
            assert_eq!(batch.shape(), [2, 5, 2]);
            for index in 0..2 {
                assert_same(views.view(seen), &batch.get(index).unwrap());
                seen += 1;
            }
        }
        assert_eq!(seen, 4);
    }
}

#[test]
fn owned_arrays_are_samples() {
    let made = |i: usize| (counted(2, 5).reversed_axes() + i as f32, i as i64);
    let loader = DataLoader::builder(pinfeed::from_fn(4, made)).batch_size(4).build().unwrap();
    let batch = loader.iter().next().unwrap().unwrap();
    for index in 0..4 {
        assert_same(made(index).0.view(), &batch.tensor_at(0).unwrap().get(index).unwrap());
    }
    assert_eq!(batch.tensor_at(1).unwrap().as_slice::<i64>().unwrap(), [0, 1, 2, 3]);
}
