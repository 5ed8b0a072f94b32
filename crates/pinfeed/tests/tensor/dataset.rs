//! What `TensorDataset` takes. What its rows hold is tested beside it.

use pinfeed::{DType, Dataset, FieldKind, Tensor, TensorDataset};

fn of(shapes: &[&[usize]]) -> pinfeed::Result<TensorDataset> {
    let tensor = |shape: &&[usize]| Tensor::zeros(DType::F32, shape).unwrap();
    TensorDataset::new(shapes.iter().map(tensor).collect::<Vec<_>>())
}

#[test]
fn a_row_a_sample() {
    let dataset = of(&[&[50, 3, 8], &[50]]).unwrap();
    assert_eq!(dataset.len(), 50);
    assert_eq!(dataset.tensors().len(), 2);
    let spec = dataset.spec().unwrap();
    let kinds: Vec<FieldKind> = spec.fields().iter().map(|field| field.kind()).collect();
    let expected = |shape: &[usize]| FieldKind::Tensor { dtype: DType::F32, shape: shape.into() };
    assert_eq!(kinds, [expected(&[3, 8]), expected(&[])]);
    assert!(spec.fields().iter().all(|field| field.name().is_none()));

    let labels = Tensor::from(vec![7i64, 8, 9]);
    let dataset = TensorDataset::new([labels.clone()]).unwrap();
    let lent = dataset.lend(2).unwrap().get(0).unwrap();
    assert_eq!(lent.as_slice::<i64>().unwrap(), [9]);
    // Where it lies in the tensor that was given: nothing was copied.
    assert_eq!(lent.bytes().as_ptr(), labels.bytes()[16..].as_ptr());
    assert!(dataset.lend(3).is_none());
}

#[test]
fn no_samples_and_no_elements() {
    let dataset = of(&[&[0, 5], &[0]]).unwrap();
    assert!(dataset.is_empty());
    assert!(dataset.lend(0).is_none());
    let dataset = of(&[&[3, 0, 4]]).unwrap();
    assert_eq!(dataset.len(), 3);
    assert!(dataset.lend(2).unwrap().get(0).unwrap().bytes().is_empty());
}

#[test]
fn sizes_that_differ_are_named() {
    let error = of(&[&[50, 3], &[50], &[40, 3]]).unwrap_err();
    assert!(error.is_config());
    let error = error.to_string();
    assert!(error.contains("size mismatch between tensors"), "{error}");
    assert!(error.contains("tensor 2 has 40 rows, tensor 0 has 50"), "{error}");
    assert!(of(&[&[0, 3], &[1]]).is_err());
}

#[test]
fn nothing_and_scalars_are_refused() {
    assert!(of(&[]).unwrap_err().to_string().contains("no tensors"));
    let error = of(&[&[50], &[]]).unwrap_err().to_string();
    assert!(error.contains("tensor 1 is a scalar"), "{error}");
    // No rows, but each would be larger than anything can be.
    assert!(of(&[&[0, usize::MAX, 2]]).is_err());
}
