//! Samples: what they consist of, where they are written, how Rust values
//! become one.

mod buf;
mod columns;
mod row;
mod spec;
mod value;

pub use buf::{FieldRef, SampleBuf, SampleRef};
pub(crate) use columns::Columns;
pub(crate) use row::{Aside, Text};
pub use row::{Row, Rows};
pub use spec::{Field, FieldKind, Name, Spec};
pub(crate) use spec::{Kind, Shape, too_large};
pub use value::Sample;
