//! Where a data set writes: [`Rows`], some neighbouring rows of a batch, and
//! [`Row`], one of them.
//!
//! A row lies in the slot when the layout of the batch is known and the sample
//! has it. Otherwise the sample goes to a buffer beside (it *spills*), and the
//! thread that ends the batch sorts it out: see `loader/README.md`.

use std::mem;

use super::buf::SampleBuf;
use super::columns::{Columns, FEW};
use super::spec::{Kind, Name, Spec};
use crate::dataset::Context;
use crate::error::{BoxError, Error, Kind as ErrorKind, Result};
use crate::tensor::{DType, Element};

/// A string of a row, kept apart from the slot.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) row: usize,
    pub(crate) field: usize,
    pub(crate) bytes: Box<[u8]>,
}

/// What a chunk of rows leaves beside the slot.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    pub(crate) texts: Vec<Text>,
    /// Samples that did not have the layout of the slot, by row.
    pub(crate) spilled: Vec<(usize, SampleBuf)>,
}

/// One row of a batch, to be written field by field, in order.
///
/// Fields are called by their position, or by the name given with
/// [`named`](Row::named) before the field is written.
pub struct Row<'a> {
    /// The layout of `columns`, where there is one.
    spec: Option<&'a Spec>,
    columns: Columns<'a>,
    /// For the first fields, what [`Kind::scalar_code`] says, as long as the
    /// sample lies in `columns`; else 0, which no scalar has. One comparison
    /// then tells that a scalar can be written where it belongs.
    scalars: [u8; FEW],
    /// Fields of the layout.
    fields: usize,
    /// The row within `columns`.
    row: usize,
    /// Fields written so far.
    field: usize,
    /// Does the sample lie in `columns`, up to now?
    in_slot: bool,
    /// The name of the next field.
    name: Option<Name>,
    /// The sample, if it is not in the slot.
    buf: SampleBuf,
    /// `Text::row` of the first row of `columns`.
    first: usize,
    texts: &'a mut Vec<Text>,
}

impl<'a> Row<'a> {
    /// One sample outside any batch, written by `write`, in `buf`'s memory.
    pub(crate) fn beside<E>(
        mut buf: SampleBuf,
        write: impl FnOnce(&mut Row<'_>) -> Result<(), E>,
    ) -> Result<SampleBuf, E> {
        buf.clear();
        let mut texts = Vec::new();
        let mut row = Row {
            spec: None,
            columns: Columns::new(),
            scalars: [0; FEW],
            fields: 0,
            row: 0,
            field: 0,
            in_slot: false,
            name: None,
            buf,
            first: 0,
            texts: &mut texts,
        };
        write(&mut row)?;
        Ok(row.buf)
    }

    /// Where a scalar without a name belongs: only if the sample so far, and
    /// this field, are as the layout says. The hot path of small samples.
    #[inline(always)]
    fn scalar_cell<T: Element>(&mut self) -> Option<&mut [u8]> {
        let size = size_of::<T>();
        if *self.scalars.get(self.field)? != Kind::scalar_code(T::DTYPE) || self.name.is_some() {
            return None;
        }
        let start = self.row * size;
        let cell = self.columns.few(self.field)?.get_mut(start..start + size)?;
        self.field += 1;
        Some(cell)
    }

    /// Names the next field.
    pub fn named(&mut self, name: impl Into<Name>) -> &mut Self {
        self.name = Some(name.into());
        self
    }

    /// The next field's memory, as bytes: for a dtype known at run time. What
    /// the bytes hold before they are written is unspecified.
    ///
    /// # Errors
    /// If the tensor would have more bytes than an object may (`isize::MAX`).
    #[inline]
    pub fn tensor_bytes(&mut self, dtype: DType, shape: &[usize]) -> Result<&mut [u8]> {
        // Asked twice, because a borrow returned early would last for the
        // whole function.
        if self.fits(dtype, shape) {
            let field = self.field;
            let bytes = self.spec.map_or(0, |s| s.fields[field].kind.row_bytes());
            let start = self.row * bytes;
            self.field += 1;
            self.name = None;
            return Ok(&mut self.columns.as_mut_slice()[field][start..start + bytes]);
        }
        let kind = Kind::tensor(dtype, shape)?;
        let bytes = kind.row_bytes();
        self.spill();
        Ok(self.buf.push(self.name.take(), kind, bytes))
    }

    #[inline]
    fn fits(&self, dtype: DType, shape: &[usize]) -> bool {
        self.in_slot
            && self
                .spec
                .and_then(|s| s.fields.get(self.field))
                .is_some_and(|field| field.kind.is_tensor(dtype, shape) && field.name == self.name)
    }

    /// The next field: a tensor of `T` of this shape, in row-major order, to be
    /// written whole. What it holds before is unspecified.
    ///
    /// # Errors
    /// If the tensor would have more bytes than an object may (`isize::MAX`).
    #[inline]
    pub fn tensor<T: Element>(&mut self, shape: &[usize]) -> Result<&mut [T]> {
        let bytes = self.tensor_bytes(T::DTYPE, shape)?;
        if bytes.is_empty() {
            // Of no bytes the address may be any.
            return Ok(&mut []);
        }
        if T::DTYPE == DType::Bool {
            // Any other byte would not be a bool.
            bytes.fill(0);
        }
        bytemuck::checked::try_cast_slice_mut(bytes)
            .map_err(|e| Error::tensor(format!("memory that can not hold {}: {e:?}", T::DTYPE)))
    }

    /// The next field: a scalar.
    ///
    /// # Errors
    /// None today; the result is that of the other writers.
    #[inline]
    pub fn put<T: Element>(&mut self, value: T) -> Result<()> {
        match self.scalar_cell::<T>() {
            Some(cell) => {
                cell.copy_from_slice(bytemuck::bytes_of(&value));
                Ok(())
            }
            None => self.put_beside(bytemuck::bytes_of(&value), T::DTYPE),
        }
    }

    /// A scalar with a name, or one that is not where the layout has one.
    #[inline(never)]
    fn put_beside(&mut self, value: &[u8], dtype: DType) -> Result<()> {
        self.tensor_bytes(dtype, &[])?.copy_from_slice(value);
        Ok(())
    }

    /// The next field: a tensor of this shape, copied from `values`.
    ///
    /// # Errors
    /// If `values` has not as many elements as the shape.
    pub fn put_slice<T: Element>(&mut self, shape: &[usize], values: &[T]) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let cell = self.tensor_bytes(T::DTYPE, shape)?;
        if cell.len() != bytes.len() {
            return Err(Error::tensor(format!(
                "{} values of {} given for a tensor of shape {shape:?}",
                values.len(),
                T::DTYPE
            )));
        }
        cell.copy_from_slice(bytes);
        Ok(())
    }

    /// The next field: a string.
    pub fn put_text(&mut self, text: &str) {
        self.put_string(Kind::Text, text.as_bytes());
    }

    /// The next field: a byte string.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_string(Kind::Bytes, bytes);
    }

    pub(crate) fn put_string(&mut self, kind: Kind, bytes: &[u8]) {
        let here = self.in_slot
            && self
                .spec
                .and_then(|s| s.fields.get(self.field))
                .is_some_and(|field| field.kind == kind && field.name == self.name);
        if here {
            self.texts.push(Text {
                row: self.first + self.row,
                field: self.field,
                bytes: bytes.into(),
            });
            self.field += 1;
            self.name = None;
        } else {
            self.spill();
            self.buf.push(self.name.take(), kind, bytes.len()).copy_from_slice(bytes);
        }
    }

    /// Moves what is written so far to the buffer, if it is in the slot.
    #[cold]
    fn spill(&mut self) {
        if !mem::replace(&mut self.in_slot, false) {
            return;
        }
        self.scalars = [0; FEW];
        let Some(spec) = self.spec else { return };
        let first_text = self.texts_of_this_row();
        let mut texts = self.texts.drain(first_text..);
        let columns = self.columns.as_mut_slice();
        for (field, column) in spec.fields[..self.field].iter().zip(columns) {
            let (name, kind) = (field.name.clone(), field.kind.clone());
            match kind {
                Kind::Tensor { bytes, .. } => {
                    let start = self.row * bytes;
                    self.buf.push(name, kind, bytes).copy_from_slice(&column[start..start + bytes]);
                }
                Kind::Text | Kind::Bytes => {
                    let bytes = texts.next().map(|t| t.bytes).unwrap_or_default();
                    self.buf.push(name, kind, bytes.len()).copy_from_slice(&bytes);
                }
            }
        }
    }

    /// Where in `texts` the strings of the row being written begin.
    fn texts_of_this_row(&self) -> usize {
        let row = self.first + self.row;
        self.texts.iter().rposition(|t| t.row != row).map_or(0, |last| last + 1)
    }

    #[inline]
    fn begin(&mut self, row: usize) {
        self.row = row;
        self.field = 0;
        if self.name.is_some() {
            self.name = None;
        }
        if !self.in_slot {
            self.begin_again();
        }
    }

    /// After a sample that was not in the slot, this one may be.
    #[inline(never)]
    fn begin_again(&mut self) {
        self.buf.clear();
        let Some(spec) = self.spec else { return };
        self.in_slot = true;
        self.fields = spec.fields.len();
        for (code, field) in self.scalars.iter_mut().zip(&spec.fields) {
            *code = match &field.kind {
                Kind::Tensor { dtype, shape, .. } if shape.is_empty() && field.name.is_none() => {
                    Kind::scalar_code(*dtype)
                }
                _ => 0,
            };
        }
    }

    /// Is the sample whole, and in the slot?
    #[inline]
    fn is_in_place(&self) -> bool {
        self.in_slot && self.fields == self.field
    }

    /// Undoes the row: its strings go.
    fn abandon(&mut self) {
        let first_text = self.texts_of_this_row();
        self.texts.truncate(first_text);
        self.buf.clear();
    }
}

/// Neighbouring rows of a batch, written by one thread.
pub struct Rows<'a> {
    row: Row<'a>,
    /// The data set index of each row's sample, as the loader knows it.
    indices: &'a [usize],
    /// Rows begun: the sample a failure belongs to is the last of them.
    begun: usize,
    /// Every row was written by column.
    by_column: bool,
    /// The first row that failed, should the data set say Ok all the same.
    failed: Option<usize>,
    spilled: &'a mut Vec<(usize, SampleBuf)>,
}

impl<'a> Rows<'a> {
    /// Rows for the samples `indices`, the rows `first..` of the batch. Without
    /// a layout the samples go to buffers beside.
    pub(crate) fn new(
        layout: Option<(&'a Spec, Columns<'a>)>,
        first: usize,
        indices: &'a [usize],
        aside: &'a mut Aside,
    ) -> Self {
        let (spec, columns) = match layout {
            Some((spec, columns)) => (Some(spec), columns),
            None => (None, Columns::new()),
        };
        let texts = &mut aside.texts;
        Rows {
            row: Row {
                spec,
                columns,
                scalars: [0; FEW],
                fields: 0,
                row: 0,
                field: 0,
                in_slot: false,
                name: None,
                buf: SampleBuf::new(),
                first,
                texts,
            },
            indices,
            begun: 0,
            by_column: false,
            failed: None,
            spilled: &mut aside.spilled,
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// No rows? Never so for the rows the loader hands out.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Writes row after row: for each of `indices`, `get` writes its sample.
    ///
    /// # Errors
    /// The first error of `get`. The loader knows which sample it belongs to.
    #[inline]
    pub fn each(
        &mut self,
        indices: &[usize],
        cx: &mut Context,
        mut get: impl FnMut(usize, &mut Row<'_>, &mut Context) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let first = self.begun;
        let outer = self.indices.get(first..).unwrap_or_default();
        let asked = indices.get(first..).unwrap_or_default();
        for (row, (&outer, &index)) in (first..).zip(outer.iter().zip(asked)) {
            if cx.is_cancelled() {
                return Err(cancelled());
            }
            self.begun = row + 1;
            // The loader's index, also where a wrapper asks with its own.
            cx.enter(outer);
            self.row.begin(row);
            if let Err(error) = get(index, &mut self.row, cx) {
                self.row.abandon();
                self.failed.get_or_insert(row);
                return Err(error);
            }
            if !self.row.is_in_place() {
                self.set_aside(row);
            }
        }
        Ok(())
    }

    /// The row's sample is not what the layout says.
    #[inline(never)]
    fn set_aside(&mut self, row: usize) {
        self.row.spill();
        self.spilled.push((self.row.first + row, mem::take(&mut self.row.buf)));
    }

    /// The memory of all rows, column by column, if the layout is just `spec`
    /// (names included): for data sets that can fill a whole column at once.
    /// The caller then writes every byte of every column.
    ///
    /// A data set that fails half way through may return its error: the loader
    /// finds the sample to blame by asking for the samples one by one.
    pub fn columns(&mut self, spec: &Spec) -> Option<&mut [&'a mut [u8]]> {
        if self.begun > 0 || self.row.spec.is_none_or(|s| s != spec) {
            return None;
        }
        self.by_column = true;
        Some(self.row.columns.as_mut_slice())
    }

    /// The column of samples that are one scalar, if that is the layout; their
    /// indices as the loader knows them; and where to tell which is being made.
    #[inline]
    pub(crate) fn scalars<T: Element>(&mut self) -> Option<(&mut [T], &'a [usize], Making<'_>)> {
        let [field] = &self.row.spec?.fields[..] else { return None };
        if self.begun > 0 || field.name.is_some() || !field.kind.is_tensor(T::DTYPE, &[]) {
            return None;
        }
        let column = self.row.columns.get_mut(0)?;
        if T::DTYPE == DType::Bool {
            column.fill(0);
        }
        let column = bytemuck::checked::try_cast_slice_mut(column).ok()?;
        Some((column, self.indices, Making { begun: &mut self.begun, now: 0 }))
    }

    /// The row that was being written when the data set stopped.
    pub(crate) fn current(&self) -> Option<usize> {
        self.begun.checked_sub(1)
    }

    /// Have all rows been written?
    pub(crate) fn is_complete(&self) -> bool {
        self.failed.is_none() && (self.by_column || self.begun == self.len())
    }

    /// If not, the first that was not, and how many were written before it.
    pub(crate) fn missing(&self) -> (usize, usize) {
        let written = self.failed.unwrap_or(self.begun);
        (written.min(self.len().saturating_sub(1)), written)
    }

    /// Goes back to where nothing was written, for another try row by row.
    pub(crate) fn restart(&mut self) {
        self.by_column = false;
        self.begun = 0;
        self.failed = None;
        let first = self.row.first;
        self.row.texts.retain(|t| t.row < first);
        self.spilled.retain(|(row, _)| *row < first);
        self.row.buf.clear();
    }

    /// Passes over the row that failed.
    pub(crate) fn abandon_current(&mut self) {
        self.row.abandon();
    }
}

/// Counts rows in a register, and tells the count when it is dropped: at the
/// end, on an error, and by a panic.
pub(crate) struct Making<'a> {
    begun: &'a mut usize,
    /// Rows begun.
    pub(crate) now: usize,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        *self.begun = self.now;
    }
}

#[cold]
pub(super) fn cancelled() -> BoxError {
    Error::new(ErrorKind::Cancelled, "the iterator was dropped").into()
}
