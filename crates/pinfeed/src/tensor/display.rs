//! Tensors as text: `{:?}` in a few words, `{}` with the elements, as PyTorch
//! prints them.

use std::fmt::{self, Write};

use super::Tensor;
use super::cells::cells;

/// Tensors with more elements are shown without the middle of their longer
/// dimensions.
const WHOLE: usize = 1000;

/// Rows shown at either end of a dimension whose middle is left out.
const EDGE: usize = 3;

/// With the middles left out, a tensor of many dimensions may still have far
/// more elements than anybody reads. Those are shown without any.
const READABLE: usize = 10_000;

/// Deeper brackets than these are not readable either.
const DEEPEST: usize = 16;

/// Columns of text a line.
const LINE: usize = 80;

/// `Tensor(f32 [2, 3], os-locked)`: dtype, shape, and who has locked the
/// memory, if anybody.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}", self.dtype())?;
        if self.ndim() > 0 {
            write!(f, " {:?}", self.shape())?;
        }
        if self.is_pinned() {
            f.write_str(", pinned")?;
        }
        if self.is_os_locked() {
            f.write_str(", os-locked")?;
        }
        f.write_str(")")
    }
}

/// The elements in brackets, as PyTorch prints them.
///
/// Floats have four digits after the point, or none if all are whole numbers.
/// Of more than 1000 elements the first and last three of each longer
/// dimension are shown.
///
/// ```
/// let x = pinfeed::Tensor::from_vec(vec![1.0f32, -0.5, 20.0, 0.25], &[2, 2])?;
/// assert_eq!(
///     x.to_string(),
///     "tensor([[ 1.0000, -0.5000],\n        \
///              [20.0000,  0.2500]], dtype=f32)"
/// );
/// # Ok::<(), pinfeed::Error>(())
/// ```
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = self.shape();
        if self.numel() == 0 {
            return write!(f, "tensor([], shape={shape:?}, dtype={})", self.dtype());
        }
        let elide = self.numel() > WHOLE;
        let shown = |len: usize| if elide { len.min(2 * EDGE) } else { len };
        let count = shape.iter().try_fold(1usize, |count, &len| count.checked_mul(shown(len)));
        if count.is_none_or(|count| count > READABLE) || self.ndim() > DEEPEST {
            return write!(f, "tensor(..., shape={shape:?}, dtype={})", self.dtype());
        }
        let mut places = Vec::new();
        visit(shape, 0, elide, &mut places);
        let cells = cells(self, &places);
        let width = cells.iter().map(String::len).max().unwrap_or(0);
        f.write_str("tensor(")?;
        Printer { elide, width, cells: cells.iter() }.print(shape, "tensor(".len(), f)?;
        write!(f, ", dtype={})", self.dtype())
    }
}

/// The indices shown of a dimension: all, or the first and the last with a gap
/// (`None`) between.
fn indices(len: usize, elide: bool) -> impl Iterator<Item = Option<usize>> {
    let gap = elide && len > 2 * EDGE;
    let (head, tail) = if gap { (EDGE, len - EDGE) } else { (len, len) };
    (0..head).map(Some).chain(gap.then_some(None)).chain((tail..len).map(Some))
}

/// The elements shown, by their place in row-major order.
fn visit(shape: &[usize], place: usize, elide: bool, places: &mut Vec<usize>) {
    let [len, inner @ ..] = shape else { return places.push(place) };
    for index in indices(*len, elide).flatten() {
        visit(inner, place * len + index, elide, places);
    }
}

/// Lays out the texts of the elements shown.
struct Printer<'a> {
    elide: bool,
    /// Characters of the longest text: all are padded to it.
    width: usize,
    /// Those not printed yet.
    cells: std::slice::Iter<'a, String>,
}

impl Printer<'_> {
    /// Prints the brackets of `shape` and what is in them. The opening one
    /// stands in column `indent`.
    fn print(&mut self, shape: &[usize], indent: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &[len, ref inner @ ..] = shape else {
            let (cell, width) = (self.cells.next().map_or("", String::as_str), self.width);
            return write!(f, "{cell:>width$}");
        };
        // Numbers fill the line. What has brackets begins a new one, with
        // empty lines between matrices, as in PyTorch.
        let per_line = if inner.is_empty() { (LINE - indent) / (self.width + 2) } else { 1 };
        f.write_char('[')?;
        for (i, index) in indices(len, self.elide).enumerate() {
            if i > 0 && i.is_multiple_of(per_line.max(1)) {
                write!(f, ",{0:\n<1$}{0:2$}", "", inner.len().max(1), indent + 1)?;
            } else if i > 0 {
                f.write_str(", ")?;
            }
            match index {
                Some(_) => self.print(inner, indent + 1, f)?,
                None => f.write_str("...")?,
            }
        }
        f.write_char(']')
    }
}
