//! A batch: what the loader gives.

use std::fmt;
use std::sync::Arc;

use pinfeed_mem::{Bytes, PARTS, Part, Sealed};

use crate::collate::Layout;
use crate::error::{Error, Result};
use crate::memory::{Memory, Unpinned};
use crate::sample::{Field, Kind, Spec};
use crate::tensor::Tensor;

/// Some samples, field by field: tensors with the batch dimension in front,
/// and strings.
///
/// All tensors of a batch lie in one slot, the small ones (up to 64 KiB
/// together) in a second: keep the labels of a thousand batches, and no image
/// is kept. The slots go back to the loader when the batch and every tensor
/// taken from it are dropped.
pub struct Batch {
    number: u64,
    samples: usize,
    layout: Arc<Layout>,
    sealed: Sealed,
    /// For each field, its strings; empty if the batch has no text field.
    texts: Vec<Vec<Box<[u8]>>>,
    why: [Unpinned; 2],
}

/// A field of a batch: see [`Batch::field`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BatchField {
    /// A tensor.
    Tensor(Tensor),
    /// A string per sample.
    Text(Vec<String>),
    /// A byte string per sample.
    Bytes(Vec<Vec<u8>>),
}

impl Batch {
    #[inline]
    pub(crate) fn new(
        number: u64,
        samples: usize,
        layout: Arc<Layout>,
        sealed: Sealed,
        texts: Vec<Vec<Box<[u8]>>>,
        memory: &Memory,
    ) -> Self {
        let why = PARTS.map(|part| {
            memory.why_unpinned(sealed.part(part).is_some_and(|slot| slot.is_os_locked()))
        });
        Batch { number, samples, layout, sealed, texts, why }
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Its number within the epoch, from 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.samples
    }

    /// No samples? Not so for a batch that the loader gave.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// What its fields are. The shapes are those of one sample, unless a
    /// collate function made the batch.
    pub fn spec(&self) -> &Spec {
        &self.layout.spec
    }

    /// The fields' names and kinds, in order.
    pub fn fields(&self) -> &[Field] {
        self.layout.spec.fields()
    }

    /// The field called `name`.
    ///
    /// # Errors
    /// If there is none: the error lists those there are.
    pub fn field(&self, name: &str) -> Result<BatchField> {
        match self.fields().iter().position(|field| field.name() == Some(name)) {
            Some(position) => self.field_at(position),
            None => Err(Error::tensor(format!(
                "the batch has no field `{name}`; its fields are {:?}",
                self.spec()
            ))),
        }
    }

    /// The field at `position`.
    ///
    /// # Errors
    /// If there is none.
    pub fn field_at(&self, position: usize) -> Result<BatchField> {
        let strings = || self.texts.get(position).into_iter().flatten();
        match self.fields().get(position).map(|field| &field.kind) {
            Some(Kind::Tensor { .. }) => Ok(BatchField::Tensor(self.tensor_at(position)?)),
            Some(Kind::Text) => Ok(BatchField::Text(
                strings().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect(),
            )),
            Some(Kind::Bytes) => {
                Ok(BatchField::Bytes(strings().map(|bytes| bytes.to_vec()).collect()))
            }
            None => Err(Error::tensor(format!(
                "the batch has {} fields, so none at position {position}",
                self.fields().len()
            ))),
        }
    }

    /// The tensor called `name`.
    ///
    /// # Errors
    /// If there is none, or the field is text.
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        Tensor::from_field(self.field(name)?)
    }

    /// The tensor at `position`. It shares the batch's memory.
    ///
    /// # Errors
    /// If there is none, or the field is text.
    pub fn tensor_at(&self, position: usize) -> Result<Tensor> {
        let Some(Kind::Tensor { dtype, .. }) = self.fields().get(position).map(|f| &f.kind) else {
            return Tensor::from_field(self.field_at(position)?);
        };
        let shape = self.layout.shape(position);
        let column = self.layout.plan.columns()[position];
        match self.sealed.part(column.part) {
            Some(slot) if column.row_bytes > 0 => {
                Ok(Tensor::from_slot(slot.clone(), column.offset, *dtype, shape))
            }
            _ => Tensor::zeros(*dtype, &shape),
        }
    }

    /// All tensors of the batch, in order; text fields are left out.
    pub fn tensors(&self) -> Vec<Tensor> {
        (0..self.fields().len()).filter_map(|position| self.tensor_at(position).ok()).collect()
    }

    /// Checks that there are just so many fields.
    ///
    /// # Errors
    /// If not.
    pub fn expect_fields(&self, count: usize) -> Result<()> {
        if self.fields().len() == count {
            return Ok(());
        }
        Err(Error::tensor(format!(
            "the batch has {} fields ({:?}), and {count} were asked for",
            self.fields().len(),
            self.spec()
        )))
    }

    /// Is every byte of its tensors page-locked by the CUDA driver?
    pub fn is_pinned(&self) -> bool {
        self.every_part(|slot| slot.is_pinned())
    }

    /// Is every byte of its tensors locked by the operating system?
    pub fn is_os_locked(&self) -> bool {
        self.every_part(|slot| slot.is_os_locked())
    }

    fn every_part(&self, is: impl Fn(&pinfeed_mem::Slot) -> bool) -> bool {
        let mut slots = PARTS.iter().filter_map(|&part| self.sealed.part(part)).peekable();
        slots.peek().is_some() && slots.all(is)
    }

    /// How many of its bytes are locked, and why the rest is not.
    pub fn pinning(&self) -> Pinning {
        let mut pinning = Pinning::default();
        for (position, field) in self.fields().iter().enumerate() {
            let column = self.layout.plan.columns()[position];
            let (bytes, slot, why) = match &field.kind {
                Kind::Tensor { .. } => (
                    column.row_bytes * self.layout.plan.rows(),
                    self.sealed.part(column.part),
                    self.why[column.part as usize],
                ),
                Kind::Text | Kind::Bytes => {
                    let strings = self.texts.get(position).into_iter().flatten();
                    (strings.map(|s| s.len()).sum(), None, Unpinned::NotATensor)
                }
            };
            if bytes == 0 {
                continue;
            }
            pinning.total_bytes += bytes;
            if slot.is_some_and(|slot| slot.is_os_locked()) {
                pinning.os_locked_bytes += bytes;
            }
            if slot.is_some_and(|slot| slot.is_pinned()) {
                pinning.pinned_bytes += bytes;
            } else {
                let name = field.name().map_or_else(|| position.to_string(), str::to_owned);
                pinning.rest.push((name, bytes, why));
            }
        }
        pinning
    }

    /// Bytes of its slots, gaps between columns included.
    pub fn slot_bytes(&self) -> usize {
        self.layout.plan.bytes(Part::Slab) + self.layout.plan.bytes(Part::Small)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("number", &self.number)
            .field("len", &self.samples)
            .field("fields", self.spec())
            .finish_non_exhaustive()
    }
}

/// How much of a batch is locked: see [`Batch::pinning`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pinning {
    /// Bytes of all fields.
    pub total_bytes: usize,
    /// Of these, page-locked by the CUDA driver.
    pub pinned_bytes: usize,
    /// Of these, locked by the operating system.
    pub os_locked_bytes: usize,
    /// The fields that are not pinned: name or position, bytes, reason.
    pub rest: Vec<(String, usize, Unpinned)>,
}

/// `0 of 12.0 MiB (12591104 bytes) pinned; image: 12.0 MiB (...), pin_memory is off; ...`
impl fmt::Display for Pinning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = Bytes(self.total_bytes as u64);
        write!(f, "{} of {total} pinned", Bytes(self.pinned_bytes as u64))?;
        if self.os_locked_bytes > 0 {
            write!(f, ", {} locked by the system", Bytes(self.os_locked_bytes as u64))?;
        }
        for (name, bytes, why) in &self.rest {
            write!(f, "; {name}: {} not pinned, {why}", Bytes(*bytes as u64))?;
        }
        Ok(())
    }
}

/// What a field of a batch can be taken as.
pub trait FromField: Sized {
    /// Takes the field.
    ///
    /// # Errors
    /// If it is something else.
    fn from_field(field: BatchField) -> Result<Self>;
}

impl BatchField {
    fn what(&self) -> &'static str {
        match self {
            BatchField::Tensor(_) => "a tensor",
            BatchField::Text(_) => "text",
            BatchField::Bytes(_) => "bytes",
        }
    }

    #[cold]
    fn is_no(&self, wanted: &str) -> Error {
        Error::tensor(format!(
            "a field of the batch is {}, and was asked for as {wanted}",
            self.what()
        ))
    }
}

impl FromField for Tensor {
    fn from_field(field: BatchField) -> Result<Self> {
        match field {
            BatchField::Tensor(tensor) => Ok(tensor),
            other => Err(other.is_no("a tensor")),
        }
    }
}

impl FromField for Vec<String> {
    fn from_field(field: BatchField) -> Result<Self> {
        match field {
            BatchField::Text(text) => Ok(text),
            other => Err(other.is_no("text")),
        }
    }
}

impl FromField for Vec<Vec<u8>> {
    fn from_field(field: BatchField) -> Result<Self> {
        match field {
            BatchField::Bytes(bytes) => Ok(bytes),
            other => Err(other.is_no("bytes")),
        }
    }
}

impl FromField for BatchField {
    fn from_field(field: BatchField) -> Result<Self> {
        Ok(field)
    }
}

/// The only field.
impl TryFrom<Batch> for Tensor {
    type Error = Error;

    fn try_from(batch: Batch) -> Result<Self> {
        <(Tensor,)>::try_from(batch).map(|(tensor,)| tensor)
    }
}

macro_rules! tuples {
    ($(($($name:ident . $position:tt),+ = $count:literal))*) => {$(
        /// The fields, in order: there must be just so many.
        impl<$($name: FromField),+> TryFrom<Batch> for ($($name,)+) {
            type Error = Error;

            fn try_from(batch: Batch) -> Result<Self> {
                batch.expect_fields($count)?;
                Ok(($($name::from_field(batch.field_at($position)?)?,)+))
            }
        }
    )*};
}

tuples! {
    (A.0 = 1)
    (A.0, B.1 = 2)
    (A.0, B.1, C.2 = 3)
    (A.0, B.1, C.2, D.3 = 4)
    (A.0, B.1, C.2, D.3, E.4 = 5)
    (A.0, B.1, C.2, D.3, E.4, F.5 = 6)
    (A.0, B.1, C.2, D.3, E.4, F.5, G.6 = 7)
    (A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7 = 8)
}
