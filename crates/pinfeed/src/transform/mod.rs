//! Transforms of images, with torchvision's names and figures.

mod normalize;
mod to_tensor;

use crate::error::{BoxError, Result};
use crate::sample::{Field, FieldRef, Kind, Row, SampleRef, Spec};
use crate::tensor::DType;

pub use normalize::Normalize;
pub use to_tensor::ToTensor;

/// The sample's first field, which the transforms here work on.
fn first<'a>(sample: SampleRef<'a>, transform: &str) -> Result<FieldRef<'a>> {
    sample.get(0).ok_or_else(|| {
        crate::error::Error::tensor(format!("{transform}: the sample has no fields"))
    })
}

/// Gives the next field of `row` the name of `field`.
fn name_like(field: FieldRef<'_>, row: &mut Row<'_>) {
    if let Some(name) = field.shared_name() {
        row.named(name.clone());
    }
}

/// Writes the fields behind the first one as they are.
fn write_rest(sample: SampleRef<'_>, row: &mut Row<'_>) -> Result<(), BoxError> {
    for field in sample.fields().skip(1) {
        field.write(row)?;
    }
    Ok(())
}

/// `spec` with another first field of the same name: a tensor of what `shape`
/// makes of the old one's dtype and shape.
fn spec_with_first(
    spec: &Spec,
    dtype: DType,
    shape: impl FnOnce(DType, &[usize]) -> Option<[usize; 3]>,
) -> Option<Spec> {
    let (first, rest) = spec.fields.split_first()?;
    let Kind::Tensor { dtype: old, shape: old_shape, .. } = &first.kind else { return None };
    let kind = Kind::tensor(dtype, &shape(*old, old_shape)?).ok()?;
    let first = Field { name: first.name.clone(), kind };
    Some(Spec { fields: std::iter::once(first).chain(rest.iter().cloned()).collect() })
}

/// What a field is, for a message.
fn is(field: FieldRef<'_>) -> String {
    match field.dtype() {
        Some(dtype) => format!("{dtype} {:?}", field.shape()),
        None => "no tensor".to_owned(),
    }
}
