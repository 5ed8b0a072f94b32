//! One sample outside a slot: [`SampleBuf`] owns it, [`SampleRef`] looks at it.

use std::fmt;

use super::row::Row;
use super::spec::{Field, Kind, Name, Spec};
use crate::error::{Error, Result};
use crate::tensor::{DType, Element, Tensor};

/// Bytes aligned for every [`Element`]. Grows and never shrinks: a worker
/// reuses it for all its samples.
#[derive(Clone, Default)]
struct AlignedBytes {
    words: Vec<u64>,
    len: usize,
}

impl AlignedBytes {
    fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends `bytes` bytes of any content, at the next 8-byte boundary, and
    /// returns their offset.
    fn grow(&mut self, bytes: usize) -> usize {
        let offset = self.len.next_multiple_of(8);
        self.len = offset + bytes;
        let words = self.len.div_ceil(8);
        if words > self.words.len() {
            self.words.resize(words, 0);
        }
        offset
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}

/// A sample that owns its fields.
///
/// The loader writes a sample here when no slot of the right layout is there
/// yet, and for a collate function of the user's, which gets a batch's samples
/// as a slice of these.
#[derive(Clone, Default)]
pub struct SampleBuf {
    spec: Spec,
    /// Where each field's bytes lie: offset and length.
    spans: Vec<(usize, usize)>,
    bytes: AlignedBytes,
}

impl SampleBuf {
    /// An empty sample.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the fields, keeps the memory.
    pub fn clear(&mut self) {
        self.spec.fields.clear();
        self.spans.clear();
        self.bytes.clear();
    }

    /// Appends a field and returns its bytes, whose content is unspecified.
    pub(crate) fn push(&mut self, name: Option<Name>, kind: Kind, bytes: usize) -> &mut [u8] {
        let offset = self.bytes.grow(bytes);
        self.spec.fields.push(Field { name, kind });
        self.spans.push((offset, bytes));
        &mut self.bytes.bytes_mut()[offset..offset + bytes]
    }

    /// The fields: names, dtypes, shapes.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// A view of it.
    pub fn as_ref(&self) -> SampleRef<'_> {
        SampleRef(Source::Buf(self))
    }

    pub(crate) fn field_bytes(&self, field: usize) -> &[u8] {
        let (offset, len) = self.spans[field];
        &self.bytes.bytes()[offset..offset + len]
    }
}

impl fmt::Debug for SampleBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SampleBuf").field(&self.spec).finish()
    }
}

/// A sample to look at, wherever it lies: in a [`SampleBuf`], or still in the
/// tensors of a [`TensorDataset`](crate::TensorDataset).
#[derive(Clone, Copy)]
pub struct SampleRef<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Buf(&'a SampleBuf),
    /// Row `index` of each tensor, which has one (the maker checks).
    Rows {
        tensors: &'a [Tensor],
        index: usize,
    },
}

impl<'a> SampleRef<'a> {
    /// Row `index` of each tensor. The caller has checked that it exists.
    pub(crate) fn of_rows(tensors: &'a [Tensor], index: usize) -> Self {
        SampleRef(Source::Rows { tensors, index })
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        match self.0 {
            Source::Buf(buf) => buf.spans.len(),
            Source::Rows { tensors, .. } => tensors.len(),
        }
    }

    /// No fields?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Field `position`, if there is one.
    pub fn get(&self, position: usize) -> Option<FieldRef<'a>> {
        if position >= self.len() {
            return None;
        }
        Some(match self.0 {
            Source::Buf(buf) => {
                let field = &buf.spec.fields[position];
                let (dtype, shape) = match &field.kind {
                    Kind::Tensor { dtype, shape, .. } => (Some(*dtype), &shape[..]),
                    Kind::Text => (None, &[][..]),
                    Kind::Bytes => (None, &[][..]),
                };
                FieldRef {
                    name: field.name.as_ref(),
                    text: field.kind == Kind::Text,
                    dtype,
                    shape,
                    bytes: buf.field_bytes(position),
                }
            }
            Source::Rows { tensors, index } => {
                let tensor = &tensors[position];
                FieldRef {
                    name: None,
                    text: false,
                    dtype: Some(tensor.dtype()),
                    shape: &tensor.shape()[1..],
                    bytes: tensor.row_bytes(index),
                }
            }
        })
    }

    /// The fields in order.
    pub fn fields(self) -> impl Iterator<Item = FieldRef<'a>> {
        (0..self.len()).filter_map(move |i| self.get(i))
    }

    /// Writes every field to `row`, as it is.
    ///
    /// # Errors
    /// As [`FieldRef::write`].
    pub fn write(self, row: &mut Row<'_>) -> Result<()> {
        self.fields().try_for_each(|field| field.write(row))
    }
}

impl fmt::Debug for SampleRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.fields()).finish()
    }
}

/// One field of a sample to look at.
#[derive(Clone, Copy)]
pub struct FieldRef<'a> {
    name: Option<&'a Name>,
    text: bool,
    /// `None` for text and bytes.
    dtype: Option<DType>,
    shape: &'a [usize],
    bytes: &'a [u8],
}

impl<'a> FieldRef<'a> {
    /// The field's name, where it has one.
    pub fn name(&self) -> Option<&'a str> {
        self.name.map(Name::as_str)
    }

    /// As [`name`](FieldRef::name), to be given on without copying its text.
    pub(crate) fn shared_name(&self) -> Option<&'a Name> {
        self.name
    }

    /// The dtype of a tensor; `None` for text and bytes.
    pub fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    /// The shape of a tensor; empty for scalars, text and bytes.
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// The raw bytes: elements in row-major order, or the string.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The string, if it is one.
    pub fn text(&self) -> Option<&'a str> {
        // Written from a `&str` in the first place.
        self.text.then(|| std::str::from_utf8(self.bytes).ok()).flatten()
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// If the field is no tensor of `T`.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        if self.dtype != Some(T::DTYPE) {
            let is = self.dtype.map_or("no tensor".to_owned(), |d| format!("a tensor of {d}"));
            return Err(Error::tensor(format!("asked for {} of a field that is {is}", T::DTYPE)));
        }
        bytemuck::checked::try_cast_slice(self.bytes)
            .map_err(|e| Error::tensor(format!("bytes that are no {}: {e:?}", T::DTYPE)))
    }

    /// Writes the field to `row` as it is, under its name.
    ///
    /// # Errors
    /// As [`Row::tensor`].
    pub fn write(&self, row: &mut Row<'_>) -> Result<()> {
        if let Some(name) = self.name {
            row.named(name.clone());
        }
        match self.dtype {
            Some(dtype) => row.tensor_bytes(dtype, self.shape)?.copy_from_slice(self.bytes),
            None if self.text => row.put_string(Kind::Text, self.bytes),
            None => row.put_string(Kind::Bytes, self.bytes),
        }
        Ok(())
    }
}

impl fmt::Debug for FieldRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut d = f.debug_struct("FieldRef");
        if let Some(name) = self.name {
            d.field("name", name);
        }
        d.field("dtype", &self.dtype).field("shape", &self.shape).finish()
    }
}
