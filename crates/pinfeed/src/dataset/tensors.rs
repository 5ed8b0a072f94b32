//! A data set of the rows of tensors.

use super::{Context, Dataset};
use crate::error::{BoxError, Error, Result};
use crate::sample::{Kind, Row, Rows, SampleRef, Spec};
use crate::tensor::Tensor;

/// A data set in memory: sample `i` is row `i` of each tensor, in order.
///
/// ```
/// use pinfeed::{Dataset, Tensor, TensorDataset};
///
/// let images = Tensor::from_vec(vec![0u8; 50 * 3 * 32 * 32], &[50, 3, 32, 32])?;
/// let labels = Tensor::from((0..50i64).collect::<Vec<_>>());
/// let dataset = TensorDataset::new([images, labels])?;
/// assert_eq!(dataset.len(), 50);
/// # Ok::<(), pinfeed::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorDataset {
    /// Each with `len` rows.
    tensors: Box<[Tensor]>,
    len: usize,
    spec: Spec,
}

impl TensorDataset {
    /// A data set of the rows of `tensors`. Their memory is shared, not copied.
    ///
    /// # Errors
    /// If there are no tensors, one is a scalar, or they differ in the number
    /// of rows.
    pub fn new(tensors: impl Into<Vec<Tensor>>) -> Result<Self> {
        let tensors = tensors.into().into_boxed_slice();
        if tensors.is_empty() {
            return Err(Error::config("TensorDataset: no tensors given")
                .with_hint("give one tensor a field, each with a row a sample"));
        }
        let mut len = None;
        let mut spec = Spec::new();
        for (position, tensor) in tensors.iter().enumerate() {
            let &[rows, ref sample @ ..] = tensor.shape() else {
                return Err(Error::config(format!(
                    "TensorDataset: tensor {position} is a scalar and has no rows"
                ))
                .with_hint("give it a first dimension, with an element a sample"));
            };
            let len = *len.get_or_insert(rows);
            if rows != len {
                return Err(Error::config(format!(
                    "TensorDataset: size mismatch between tensors: tensor {position} has {rows} \
                     rows, tensor 0 has {len}"
                ))
                .with_hint("each tensor needs a row a sample"));
            }
            spec = spec.with(None, Kind::tensor(tensor.dtype(), sample)?);
        }
        Ok(TensorDataset { tensors, len: len.unwrap_or(0), spec })
    }

    /// The tensors, in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }
}

impl Dataset for TensorDataset {
    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize, row: &mut Row<'_>, _: &mut Context) -> Result<(), BoxError> {
        if index >= self.len {
            return Err(Error::config(format!(
                "TensorDataset: index {index} is out of range for {} samples",
                self.len
            ))
            .into());
        }
        for tensor in &self.tensors {
            let cell = row.tensor_bytes(tensor.dtype(), &tensor.shape()[1..])?;
            cell.copy_from_slice(tensor.row_bytes(index));
        }
        Ok(())
    }

    /// Column by column, where the batch is laid out for it.
    fn get_many(
        &self,
        indices: &[usize],
        rows: &mut Rows<'_>,
        cx: &mut Context,
    ) -> Result<(), BoxError> {
        // An index out of range is left to `get`, which says so for its sample.
        let whole = indices.len() == rows.len()
            && !indices.is_empty()
            && indices.iter().all(|&index| index < self.len);
        if whole && let Some(columns) = rows.columns(&self.spec) {
            let run = run(indices);
            for (tensor, column) in self.tensors.iter().zip(columns) {
                match run {
                    Some(first) => copy_run(tensor.bytes(), column, first, indices.len()),
                    None => gather(tensor.bytes(), column, indices),
                }
            }
            return Ok(());
        }
        rows.each(indices, cx, |index, row, cx| self.get(index, row, cx))
    }

    fn spec(&self) -> Option<Spec> {
        Some(self.spec.clone())
    }

    fn lend(&self, index: usize) -> Option<SampleRef<'_>> {
        (index < self.len).then(|| SampleRef::of_rows(&self.tensors, index))
    }
}

/// The first index, if each of the others follows the one before.
fn run(indices: &[usize]) -> Option<usize> {
    let first = *indices.first()?;
    // `get_many` has checked that the indices are in range, so no overflow.
    indices.iter().enumerate().all(|(i, &index)| index == first + i).then_some(first)
}

/// Copies `rows` rows from row `first` on.
fn copy_run(tensor: &[u8], column: &mut [u8], first: usize, rows: usize) {
    let start = column.len() / rows * first;
    column.copy_from_slice(&tensor[start..][..column.len()]);
}

/// Copies row `indices[i]` of `tensor` to row `i` of `column`.
fn gather(tensor: &[u8], column: &mut [u8], indices: &[usize]) {
    // Labels and the like: a load and a store each, where a `memcpy` of a
    // length that is not known beforehand would be a call.
    match column.len() / indices.len() {
        0 => {}
        1 => gather_small::<1>(tensor, column, indices),
        2 => gather_small::<2>(tensor, column, indices),
        4 => gather_small::<4>(tensor, column, indices),
        8 => gather_small::<8>(tensor, column, indices),
        row_bytes => {
            for (row, &index) in column.chunks_exact_mut(row_bytes).zip(indices) {
                row.copy_from_slice(&tensor[index * row_bytes..][..row_bytes]);
            }
        }
    }
}

fn gather_small<const BYTES: usize>(tensor: &[u8], column: &mut [u8], indices: &[usize]) {
    let (tensor, _) = tensor.as_chunks::<BYTES>();
    let (column, _) = column.as_chunks_mut::<BYTES>();
    for (row, &index) in column.iter_mut().zip(indices) {
        *row = tensor[index];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::Aside;
    use crate::tensor::DType;

    /// What lies in the rows after `write`, column by column, and whether it
    /// was written by column.
    fn written(
        dataset: &TensorDataset,
        indices: &[usize],
        write: impl FnOnce(&mut Rows<'_>, &mut Context) -> Result<(), BoxError>,
    ) -> (Vec<Vec<u8>>, bool) {
        let spec = dataset.spec().unwrap();
        let column = |f: &crate::sample::Field| vec![0xaa; f.kind.row_bytes() * indices.len()];
        let mut columns: Vec<Vec<u8>> = spec.fields().iter().map(column).collect();
        let mut aside = Aside::default();
        let slices = columns.iter_mut().map(Vec::as_mut_slice).collect();
        let mut rows = Rows::new(Some((&spec, slices)), 0, indices, &mut aside);
        write(&mut rows, &mut Context::new(None, Default::default())).unwrap();
        assert!(rows.is_complete());
        let by_column = rows.current().is_none();
        drop(rows);
        assert!(aside.spilled.is_empty());
        (columns, by_column)
    }

    fn field() -> impl Strategy<Value = (DType, Vec<usize>)> {
        let dtype = prop::sample::select(vec![
            DType::U8,
            DType::Bool,
            DType::BF16,
            DType::I32,
            DType::F32,
            DType::I64,
        ]);
        (dtype, prop::collection::vec(0usize..4, 0..3))
    }

    fn dataset(len: usize, fields: &[(DType, Vec<usize>)]) -> TensorDataset {
        let mut byte = 0u8;
        let tensor = |(dtype, shape): &(DType, Vec<usize>)| {
            let shape: Vec<usize> = [&[len], &shape[..]].concat();
            let bytes = dtype.bytes_of(&shape).unwrap();
            let mut slot = pinfeed_mem::SlotMut::alone(&pinfeed_mem::Pageable, bytes).unwrap();
            for cell in slot.as_mut_slice() {
                byte = byte.wrapping_mul(5).wrapping_add(17);
                *cell = if *dtype == DType::Bool { byte & 1 } else { byte };
            }
            Tensor::from_slot(slot.seal(), 0, *dtype, shape[..].into())
        };
        TensorDataset::new(fields.iter().map(tensor).collect::<Vec<_>>()).unwrap()
    }

    proptest! {
        /// A gather and a run give what row by row gives, and what the tensors
        /// hold.
        #[test]
        fn by_column_is_as_row_by_row(
            len in 1usize..50,
            fields in prop::collection::vec(field(), 1..5),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
            a_run in any::<bool>(),
        ) {
            let dataset = dataset(len, &fields);
            let mut indices: Vec<usize> = picks.iter().map(|pick| pick.index(len)).collect();
            if a_run {
                indices = (indices[0]..len.min(indices[0] + indices.len())).collect();
            }
            let (many, by_column) =
                written(&dataset, &indices, |rows, cx| dataset.get_many(&indices, rows, cx));
            prop_assert!(by_column);
            let (each, _) = written(&dataset, &indices, |rows, cx| {
                rows.each(&indices, cx, |index, row, cx| dataset.get(index, row, cx))
            });
            prop_assert_eq!(&many, &each);
            for (tensor, column) in dataset.tensors().iter().zip(&many) {
                let rows = indices.iter().map(|&index| tensor.get(index).unwrap());
                let bytes: Vec<u8> = rows.flat_map(|row| row.bytes().to_vec()).collect();
                prop_assert_eq!(&bytes, column);
            }
            for &index in &indices {
                let lent = dataset.lend(index).unwrap();
                prop_assert_eq!(lent.len(), fields.len());
                for (field, tensor) in lent.fields().zip(dataset.tensors()) {
                    prop_assert_eq!(field.shape(), &tensor.shape()[1..]);
                    let row = tensor.get(index).unwrap();
                    prop_assert_eq!(field.bytes(), row.bytes());
                }
            }
        }
    }

    /// The loader blames the sample that `get` failed for.
    #[test]
    fn an_index_out_of_range_is_found() {
        let dataset = dataset(5, &[(DType::I64, vec![])]);
        let spec = dataset.spec().unwrap();
        let mut aside = Aside::default();
        let mut column = [0; 3 * 8];
        let columns = [&mut column[..]].into_iter().collect();
        let indices = [4, 5, 1];
        let mut rows = Rows::new(Some((&spec, columns)), 0, &indices, &mut aside);
        let error = dataset
            .get_many(&indices, &mut rows, &mut Context::new(None, Default::default()))
            .unwrap_err();
        assert!(error.to_string().contains("index 5 is out of range for 5"), "{error}");
        assert_eq!(rows.current(), Some(1));
        assert!(dataset.lend(5).is_none());
    }

    #[test]
    fn without_a_layout() {
        let dataset = dataset(4, &[(DType::F32, vec![2]), (DType::I64, vec![])]);
        let mut aside = Aside::default();
        let mut rows = Rows::new(None, 0, &[3, 0], &mut aside);
        dataset.get_many(&[3, 0], &mut rows, &mut Context::new(None, Default::default())).unwrap();
        drop(rows);
        for ((row, sample), index) in aside.spilled.iter().zip([3, 0]) {
            assert_eq!(*row, usize::from(index == 0));
            assert_eq!(Some(sample.spec()), dataset.spec().as_ref());
            for (field, tensor) in sample.as_ref().fields().zip(dataset.tensors()) {
                assert_eq!(field.bytes(), tensor.get(index).unwrap().bytes());
            }
        }
        assert_eq!(aside.spilled.len(), 2);
    }
}
