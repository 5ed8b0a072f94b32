//! A collate function of the user's.

use std::sync::Arc;

use pinfeed_mem::Grid;
use smallvec::SmallVec;

use super::layout::Layout;
use crate::error::{BoxError, Error, Kind as ErrorKind, Result};
use crate::memory::Memory;
use crate::sample::{Kind, SampleBuf, Spec};
use crate::tensor::{DType, Element};

/// Makes a batch of samples in a way of its own: padding, packing, a mix.
///
/// Without one, fields are stacked: the samples are written where the batch
/// lies, and no sample is copied. With one, each sample is made in a buffer of
/// its own first; the batch's memory still comes from the loader.
pub trait Collate: Send + Sync {
    /// Makes one batch of `samples`, which stand in the order of their
    /// indices: asks `batch` for memory, once, and fills it.
    ///
    /// # Errors
    /// Whatever keeps the batch from being made; it reaches the user at that
    /// batch's turn.
    fn collate(&self, samples: &[SampleBuf], batch: &mut BatchMut<'_>) -> Result<(), BoxError>;
}

impl<F> Collate for F
where
    F: Fn(&[SampleBuf], &mut BatchMut<'_>) -> Result<(), BoxError> + Send + Sync,
{
    fn collate(&self, samples: &[SampleBuf], batch: &mut BatchMut<'_>) -> Result<(), BoxError> {
        self(samples, batch)
    }
}

/// A batch being made by a [`Collate`].
pub struct BatchMut<'a> {
    memory: &'a Memory,
    made: Option<Made>,
}

pub(crate) struct Made {
    pub(crate) layout: Arc<Layout>,
    pub(crate) grid: Grid,
    /// For each field, its strings.
    pub(crate) texts: Vec<Vec<Box<[u8]>>>,
}

impl<'a> BatchMut<'a> {
    pub(crate) fn new(memory: &'a Memory) -> Self {
        BatchMut { memory, made: None }
    }

    /// Memory for fields of these dtypes and shapes, the batch dimension
    /// included. It is zeroed.
    ///
    /// # Errors
    /// If memory was asked for before, or there is none.
    pub fn allocate(&mut self, spec: &Spec) -> Result<()> {
        if self.made.is_some() {
            return Err(collate("memory for a batch can be asked for once"));
        }
        let layout = Layout::of_batch(spec.clone())?;
        let mut grid = layout.grid(self.memory)?;
        for column in grid.columns::<SmallVec<[&mut [u8]; 4]>>(0..1) {
            column.fill(0);
        }
        let texts = spec.fields.iter().map(|_| Vec::new()).collect();
        self.made = Some(Made { layout, grid, texts });
        Ok(())
    }

    /// Field `position`, as its elements in row-major order.
    ///
    /// # Errors
    /// If there is no such tensor, or it is not of `T`.
    pub fn tensor_mut<T: Element>(&mut self, position: usize) -> Result<&mut [T]> {
        let made = self.made()?;
        let kind = made.layout.spec.fields.get(position).map(|field| &field.kind);
        match kind {
            Some(Kind::Tensor { dtype, .. }) if *dtype == T::DTYPE => {}
            Some(other) => {
                return Err(collate(format!(
                    "field {position} is {other}, and was asked for as {}",
                    T::DTYPE
                )));
            }
            None => return Err(collate(format!("there is no field {position}"))),
        }
        let columns: SmallVec<[&mut [u8]; 4]> = made.grid.columns(0..1);
        let bytes = columns.into_iter().nth(position).unwrap_or_default();
        if T::DTYPE == DType::Bool && bytes.iter().any(|&b| b > 1) {
            bytes.fill(0);
        }
        bytemuck::checked::try_cast_slice_mut(bytes)
            .map_err(|e| collate(format!("memory that can not hold {}: {e:?}", T::DTYPE)))
    }

    /// Appends a string to field `position`, a text or bytes field.
    ///
    /// # Errors
    /// If there is no such field.
    pub fn push_text(&mut self, position: usize, text: &str) -> Result<()> {
        self.push_bytes(position, text.as_bytes())
    }

    /// As [`push_text`](BatchMut::push_text), for bytes.
    ///
    /// # Errors
    /// If there is no such field.
    pub fn push_bytes(&mut self, position: usize, bytes: &[u8]) -> Result<()> {
        let made = self.made()?;
        match made.layout.spec.fields.get(position).map(|field| &field.kind) {
            Some(Kind::Text | Kind::Bytes) => {
                made.texts[position].push(bytes.into());
                Ok(())
            }
            Some(other) => Err(collate(format!("field {position} is {other}, no text"))),
            None => Err(collate(format!("there is no field {position}"))),
        }
    }

    fn made(&mut self) -> Result<&mut Made> {
        self.made.as_mut().ok_or_else(|| collate("ask for memory first (allocate)"))
    }

    /// What was made. A collate that never asked for memory made a batch
    /// without fields.
    pub(crate) fn finish(mut self) -> Result<Made> {
        if self.made.is_none() {
            self.allocate(&Spec::new())?;
        }
        self.made.ok_or_else(|| collate("no memory"))
    }
}

#[cold]
fn collate(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Collate, message)
}
