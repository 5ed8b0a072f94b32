//! What a sample consists of: [`Spec`], a list of [`Field`]s.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::tensor::DType;

/// A tensor's shape. Up to four dimensions without an allocation.
pub(crate) type Shape = SmallVec<[usize; 4]>;

/// The name of a field. Fields without one are called by their position.
#[derive(Clone)]
pub struct Name(NameRepr);

#[derive(Clone)]
enum NameRepr {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Name {
    /// The name's text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            NameRepr::Static(text) => text,
            NameRepr::Shared(text) => text,
        }
    }
}

impl From<&'static str> for Name {
    fn from(text: &'static str) -> Self {
        Name(NameRepr::Static(text))
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Name(NameRepr::Shared(text.into()))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A dense tensor: `dtype` and the shape of one sample, without the batch
    /// dimension. A scalar has no dimensions.
    Tensor {
        /// The type of the elements.
        dtype: DType,
        /// The shape of one sample.
        shape: Box<[usize]>,
    },
    /// A string per sample. Not a tensor: never page-locked.
    Text,
    /// A byte string per sample. Not a tensor: never page-locked.
    Bytes,
}

/// One field of a sample: a name, if it has one, and what it holds.
#[derive(Clone, PartialEq, Eq)]
pub struct Field {
    pub(crate) name: Option<Name>,
    pub(crate) kind: Kind,
}

/// [`FieldKind`] with the shape inline and the bytes computed once.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Tensor { dtype: DType, shape: Shape, bytes: usize },
    Text,
    Bytes,
}

impl Kind {
    /// A tensor's kind; an error if it would have more bytes than an object may.
    pub(crate) fn tensor(dtype: DType, shape: &[usize]) -> Result<Self> {
        match dtype.bytes_of(shape) {
            Some(bytes) => Ok(Kind::Tensor { dtype, shape: shape.into(), bytes }),
            None => Err(too_large(dtype, shape)),
        }
    }

    /// Bytes of one sample inside a slot: none for text, which lies apart.
    pub(crate) fn row_bytes(&self) -> usize {
        match self {
            Kind::Tensor { bytes, .. } => *bytes,
            Kind::Text | Kind::Bytes => 0,
        }
    }

    /// A scalar's kind as one byte that is not 0.
    #[inline]
    pub(crate) const fn scalar_code(dtype: DType) -> u8 {
        dtype as u8 + 1
    }

    #[inline]
    pub(crate) fn is_tensor(&self, dtype: DType, shape: &[usize]) -> bool {
        matches!(self, Kind::Tensor { dtype: d, shape: s, .. } if *d == dtype && s[..] == *shape)
    }
}

#[cold]
pub(crate) fn too_large(dtype: DType, shape: &[usize]) -> Error {
    Error::tensor(format!(
        "a {dtype} tensor of shape {shape:?} has more bytes than memory can hold"
    ))
}

impl Field {
    /// The field's name, where it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(Name::as_str)
    }

    /// What it holds.
    pub fn kind(&self) -> FieldKind {
        match &self.kind {
            Kind::Tensor { dtype, shape, .. } => {
                FieldKind::Tensor { dtype: *dtype, shape: shape[..].into() }
            }
            Kind::Text => FieldKind::Text,
            Kind::Bytes => FieldKind::Bytes,
        }
    }
}

/// `f32 [3, 32, 32]`, as messages show it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Tensor { dtype, shape, .. } if shape.is_empty() => write!(f, "{dtype}"),
            Kind::Tensor { dtype, shape, .. } => write!(f, "{dtype} {:?}", &shape[..]),
            Kind::Text => f.write_str("text"),
            Kind::Bytes => f.write_str("bytes"),
        }
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{}: ", name.as_str())?;
        }
        write!(f, "{}", self.kind)
    }
}

/// What every sample of a data set consists of.
///
/// A data set that knows gives it from [`Dataset::spec`](crate::Dataset::spec):
/// the first batch is then laid out before its first sample is read. Without
/// it the layout is learned from the samples.
///
/// ```
/// use pinfeed::{DType, Spec};
///
/// let spec = Spec::new()
///     .tensor("image", DType::F32, &[3, 32, 32])?
///     .tensor("label", DType::I64, &[])?;
/// assert_eq!(spec.row_bytes(), 3 * 32 * 32 * 4 + 8);
/// # Ok::<(), pinfeed::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Spec {
    pub(crate) fields: Vec<Field>,
}

impl Spec {
    /// No fields yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a named tensor: dtype, and one sample's shape.
    ///
    /// # Errors
    /// If one sample would have more bytes than an object may (`isize::MAX`).
    pub fn tensor(self, name: impl Into<Name>, dtype: DType, shape: &[usize]) -> Result<Self> {
        let kind = Kind::tensor(dtype, shape)?;
        Ok(self.with(Some(name.into()), kind))
    }

    /// Adds a tensor that is called by its position.
    ///
    /// # Errors
    /// As [`tensor`](Spec::tensor).
    pub fn unnamed(self, dtype: DType, shape: &[usize]) -> Result<Self> {
        let kind = Kind::tensor(dtype, shape)?;
        Ok(self.with(None, kind))
    }

    /// Adds a named string.
    pub fn text(self, name: impl Into<Name>) -> Self {
        self.with(Some(name.into()), Kind::Text)
    }

    /// Adds a named byte string.
    pub fn bytes(self, name: impl Into<Name>) -> Self {
        self.with(Some(name.into()), Kind::Bytes)
    }

    pub(crate) fn with(mut self, name: Option<Name>, kind: Kind) -> Self {
        self.fields.push(Field { name, kind });
        self
    }

    /// The fields in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Bytes that the tensors of one sample take.
    pub fn row_bytes(&self) -> usize {
        self.fields.iter().map(|f| f.kind.row_bytes()).sum()
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.fields).finish()
    }
}
