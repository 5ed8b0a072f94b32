//! Element types: [`DType`] at run time, [`Element`] at compile time.

use std::fmt;

use half::{bf16, f16};

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// 8-bit unsigned integer.
    U8,
    /// 8-bit signed integer.
    I8,
    /// 16-bit unsigned integer.
    U16,
    /// 16-bit signed integer.
    I16,
    /// 32-bit unsigned integer.
    U32,
    /// 32-bit signed integer.
    I32,
    /// 64-bit unsigned integer.
    U64,
    /// 64-bit signed integer.
    I64,
    /// IEEE half precision.
    F16,
    /// bfloat16: the upper half of an `f32`.
    BF16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// One byte, 0 or 1.
    Bool,
}

impl DType {
    /// Bytes of one element; also its alignment.
    pub const fn size(self) -> usize {
        match self {
            DType::U8 | DType::I8 | DType::Bool => 1,
            DType::U16 | DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 => 8,
        }
    }

    /// Rust's name of it: `"f32"`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::U16 => "u16",
            DType::I16 => "i16",
            DType::U32 => "u32",
            DType::I32 => "i32",
            DType::U64 => "u64",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::Bool => "bool",
        }
    }

    /// Bytes of a dense tensor of this type and shape; `None` if that is more
    /// than a Rust object may have (`isize::MAX`).
    pub fn bytes_of(self, shape: &[usize]) -> Option<usize> {
        // A zero anywhere makes it empty, however large the rest is.
        if shape.contains(&0) {
            return Some(0);
        }
        shape
            .iter()
            .try_fold(self.size(), |bytes, &n| bytes.checked_mul(n))
            .filter(|&bytes| bytes <= isize::MAX as usize)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that a tensor's elements can have. Sealed: the thirteen of
/// [`DType`].
pub trait Element:
    sealed::Sealed
    + bytemuck::NoUninit
    + bytemuck::CheckedBitPattern
    + PartialEq
    + fmt::Debug
    + Default
    + Send
    + Sync
    + 'static
{
    /// This type's [`DType`].
    const DTYPE: DType;
}

macro_rules! elements {
    ($($ty:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32,
    u64 => U64, i64 => I64, f16 => F16, bf16 => BF16, f32 => F32, f64 => F64,
    bool => Bool,
}
