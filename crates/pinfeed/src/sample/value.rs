//! [`Sample`]: Rust values that can be written as a sample.

use super::row::{Row, Rows, cancelled};
use crate::dataset::Context;
use crate::error::{BoxError, Result};
use crate::tensor::{Element, Tensor};

/// A value that is a sample, or a part of one: each of its parts becomes a
/// field, in order.
///
/// Scalars, [`Tensor`]s, arrays, slices and vectors (one dimension), strings, and tuples
/// of these; structs by `#[derive(Sample)]`, whose field names are kept.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not be written as a sample",
    note = "a `usize` is cast (`as i64`), a struct gets `#[derive(Sample)]`"
)]
pub trait Sample {
    /// Writes the value's fields to `row`.
    ///
    /// # Errors
    /// As the writers of [`Row`].
    fn write(&self, row: &mut Row<'_>) -> Result<()>;

    /// Writes one value a row: `make(index)` for each of `indices`.
    ///
    /// Not for callers: the loader's way in for closures. Scalars fill their
    /// column in one tight loop.
    #[doc(hidden)]
    #[inline]
    fn write_each(
        indices: &[usize],
        rows: &mut Rows<'_>,
        cx: &mut Context,
        mut make: impl FnMut(usize) -> Result<Self, BoxError>,
    ) -> Result<(), BoxError>
    where
        Self: Sized,
    {
        rows.each(indices, cx, |index, row, _| Ok(make(index)?.write(row)?))
    }
}

macro_rules! scalars {
    ($($ty:ty),*) => {$(
        impl Sample for $ty {
            #[inline]
            fn write(&self, row: &mut Row<'_>) -> Result<()> {
                row.put(*self)
            }

            #[inline]
            fn write_each(
                indices: &[usize],
                rows: &mut Rows<'_>,
                cx: &mut Context,
                mut make: impl FnMut(usize) -> Result<Self, BoxError>,
            ) -> Result<(), BoxError> {
                let Some((column, outer, mut making)) = rows.scalars::<$ty>() else {
                    return rows.each(indices, cx, |index, row, _| Ok(make(index)?.write(row)?));
                };
                // Another thread may drop the iterator, or ask where a worker
                // is; the caller of `next()` does neither meanwhile.
                let watched = cx.worker().is_some();
                for ((cell, &outer), &index) in column.iter_mut().zip(outer).zip(indices) {
                    if watched {
                        if cx.is_cancelled() {
                            return Err(cancelled());
                        }
                        cx.enter(outer);
                    }
                    making.now += 1;
                    *cell = make(index)?;
                }
                Ok(())
            }
        }
    )*};
}

scalars!(u8, i8, u16, i16, u32, i32, u64, i64, half::f16, half::bf16, f32, f64, bool);

impl Sample for Tensor {
    fn write(&self, row: &mut Row<'_>) -> Result<()> {
        row.tensor_bytes(self.dtype(), self.shape())?.copy_from_slice(self.bytes());
        Ok(())
    }
}

impl<T: Element, const N: usize> Sample for [T; N] {
    fn write(&self, row: &mut Row<'_>) -> Result<()> {
        row.put_slice(&[N], self)
    }
}

impl<T: Element, const M: usize, const N: usize> Sample for [[T; M]; N] {
    fn write(&self, row: &mut Row<'_>) -> Result<()> {
        row.put_slice(&[N, M], self.as_flattened())
    }
}

impl<T: Element, const L: usize, const M: usize, const N: usize> Sample for [[[T; L]; M]; N] {
    fn write(&self, row: &mut Row<'_>) -> Result<()> {
        row.put_slice(&[N, M, L], self.as_flattened().as_flattened())
    }
}

impl<T: Element> Sample for [T] {
    fn write(&self, row: &mut Row<'_>) -> Result<()> {
        row.put_slice(&[self.len()], self)
    }
}

impl<T: Element> Sample for Vec<T> {
    fn write(&self, row: &mut Row<'_>) -> Result<()> {
        self.as_slice().write(row)
    }
}

impl Sample for str {
    fn write(&self, row: &mut Row<'_>) -> Result<()> {
        row.put_text(self);
        Ok(())
    }
}

impl Sample for String {
    fn write(&self, row: &mut Row<'_>) -> Result<()> {
        self.as_str().write(row)
    }
}

impl<S: Sample + ?Sized> Sample for &S {
    fn write(&self, row: &mut Row<'_>) -> Result<()> {
        S::write(self, row)
    }
}

impl<S: Sample + ?Sized> Sample for Box<S> {
    fn write(&self, row: &mut Row<'_>) -> Result<()> {
        S::write(self, row)
    }
}

macro_rules! tuples {
    ($(($($name:ident . $position:tt),+))*) => {$(
        impl<$($name: Sample),+> Sample for ($($name,)+) {
            #[inline]
            fn write(&self, row: &mut Row<'_>) -> Result<()> {
                $(self.$position.write(row)?;)+
                Ok(())
            }
        }
    )*};
}

tuples! {
    (A.0)
    (A.0, B.1)
    (A.0, B.1, C.2)
    (A.0, B.1, C.2, D.3)
    (A.0, B.1, C.2, D.3, E.4)
    (A.0, B.1, C.2, D.3, E.4, F.5)
    (A.0, B.1, C.2, D.3, E.4, F.5, G.6)
    (A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7)
}
