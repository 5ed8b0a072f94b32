//! Rows in slots: a [`Plan`] says where each column lies, a [`Grid`] is the
//! memory laid out so, and rows of it can be written by several threads.

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc as StdArc;

use crate::block::ALIGN;
use crate::slot::{Slot, SlotMut};

/// Columns of at most this many bytes together lie in a small slot of their
/// own, so that keeping them does not keep the large ones.
pub const SMALL_BYTES: usize = 64 << 10;

/// The two slots a grid may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The large columns.
    Slab = 0,
    /// The small ones.
    Small = 1,
}

/// Both parts, in order.
pub const PARTS: [Part; 2] = [Part::Slab, Part::Small];

/// Where the columns of a grid lie.
///
/// I2: columns do not overlap, and each lies within its part's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    rows: usize,
    columns: Box<[Column]>,
    bytes: [usize; 2],
}

/// A column: `rows` rows of `row_bytes` bytes, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The slot it lies in.
    pub part: Part,
    /// Where it begins there, a multiple of 64.
    pub offset: usize,
    /// Bytes of one row.
    pub row_bytes: usize,
}

impl Plan {
    /// Lays out columns of `rows` rows, with so many bytes a row. `None` if
    /// that is more than an object may have (`isize::MAX` bytes).
    pub fn new(rows: usize, row_bytes: impl IntoIterator<Item = usize>) -> Option<Self> {
        let mut columns: Box<[Column]> = row_bytes
            .into_iter()
            .map(|row_bytes| Column { part: Part::Slab, offset: 0, row_bytes })
            .collect();
        // The smallest columns first, as many as fit the small slot.
        let mut by_size: Vec<usize> = (0..columns.len()).collect();
        by_size.sort_by_key(|&c| columns[c].row_bytes);
        let mut small = 0usize;
        for c in by_size {
            let end = small
                .next_multiple_of(ALIGN)
                .checked_add(columns[c].row_bytes.checked_mul(rows)?)?;
            if end > SMALL_BYTES {
                break;
            }
            columns[c].part = Part::Small;
            small = end;
        }
        let mut bytes = [0usize; 2];
        for column in &mut columns {
            let used = &mut bytes[column.part as usize];
            column.offset = used.checked_next_multiple_of(ALIGN)?;
            *used = column.offset.checked_add(column.row_bytes.checked_mul(rows)?)?;
        }
        let fits = bytes.iter().all(|&b| b <= isize::MAX as usize - ALIGN);
        fits.then_some(Plan { rows, columns, bytes })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns, in the order given.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Bytes of a part. Without any, it needs no slot.
    pub fn bytes(&self, part: Part) -> usize {
        self.bytes[part as usize]
    }
}

/// Memory laid out by a plan, being written.
pub struct Grid {
    plan: StdArc<Plan>,
    /// I3: a part is there, with at least the plan's bytes, if the plan has
    /// bytes for it.
    parts: [Option<SlotMut>; 2],
}

impl Grid {
    /// Has memory laid out by `plan`: `acquire` is asked for each part's slot.
    ///
    /// # Errors
    /// Those of `acquire`.
    ///
    /// # Panics
    /// If `acquire` gives a slot with fewer bytes than it was asked for.
    #[inline]
    pub fn new<E>(
        plan: StdArc<Plan>,
        mut acquire: impl FnMut(Part, usize) -> Result<SlotMut, E>,
    ) -> Result<Self, E> {
        let mut parts = [None, None];
        for part in PARTS {
            let bytes = plan.bytes(part);
            if bytes > 0 {
                let slot = acquire(part, bytes)?;
                assert!(slot.len() >= bytes, "a slot of {} bytes for {bytes}", slot.len());
                parts[part as usize] = Some(slot);
            }
        }
        Ok(Grid { plan, parts })
    }

    /// The plan.
    pub fn plan(&self) -> &StdArc<Plan> {
        &self.plan
    }

    /// The bytes of `rows`, column by column.
    ///
    /// # Panics
    /// If there are not so many rows.
    #[inline]
    pub fn columns<'a, C: FromIterator<&'a mut [u8]>>(&'a mut self, rows: Range<usize>) -> C {
        // SAFETY: `&mut self` is the only access.
        unsafe { self.columns_shared(rows) }
    }

    /// As [`columns`](Grid::columns), for writers that share the grid.
    ///
    /// # Safety
    /// While what it returns is used, nobody else reads or writes these rows.
    ///
    /// # Panics
    /// If there are not so many rows.
    #[inline]
    pub(crate) unsafe fn columns_shared<'a, C: FromIterator<&'a mut [u8]>>(
        &'a self,
        rows: Range<usize>,
    ) -> C {
        assert!(rows.start <= rows.end && rows.end <= self.plan.rows, "no such rows: {rows:?}");
        self.plan
            .columns
            .iter()
            .map(|column| {
                let len = column.row_bytes * rows.len();
                let Some(slot) = self.parts[column.part as usize].as_ref().filter(|_| len > 0)
                else {
                    return &mut [][..];
                };
                let start = column.offset + column.row_bytes * rows.start;
                // SAFETY: within the slot: I2 and I3, with `rows` checked above.
                let ptr: NonNull<u8> = unsafe { slot.as_ptr().add(start) };
                // SAFETY: initialised (`Block`); the slot is this grid's (I1),
                // the rows are the caller's alone, and columns do not overlap
                // (I2).
                unsafe { std::slice::from_raw_parts_mut(ptr.as_ptr(), len) }
            })
            .collect()
    }

    /// Ends the writing.
    #[inline]
    pub fn seal(self) -> Sealed {
        Sealed { plan: self.plan, parts: self.parts.map(|part| part.map(SlotMut::seal)) }
    }
}

impl fmt::Debug for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grid").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// A grid that nobody writes any more.
#[derive(Clone, Debug)]
pub struct Sealed {
    plan: StdArc<Plan>,
    parts: [Option<Slot>; 2],
}

impl Sealed {
    /// The plan.
    pub fn plan(&self) -> &StdArc<Plan> {
        &self.plan
    }

    /// A part's slot, if it has bytes.
    pub fn part(&self, part: Part) -> Option<&Slot> {
        self.parts[part as usize].as_ref()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn small_columns_apart() {
        let plan = Plan::new(1024, [3 * 32 * 32 * 4, 8]).unwrap();
        let parts: Vec<_> = plan.columns().iter().map(|c| c.part).collect();
        assert_eq!(parts, [Part::Slab, Part::Small]);
        assert_eq!(plan.bytes(Part::Slab), 1024 * 3 * 32 * 32 * 4);
        assert_eq!(plan.bytes(Part::Small), 1024 * 8);
    }

    #[test]
    fn all_small() {
        let plan = Plan::new(3, [8, 1, 0]).unwrap();
        assert_eq!(plan.bytes(Part::Slab), 0);
        assert_eq!(plan.columns()[1].offset % ALIGN, 0);
    }

    #[test]
    fn too_large() {
        assert!(Plan::new(usize::MAX, [2]).is_none());
        assert!(Plan::new(2, [isize::MAX as usize]).is_none());
    }

    #[test]
    fn rows_do_not_overlap() {
        let plan = StdArc::new(Plan::new(4, [3, 5]).unwrap());
        let mut grid = Grid::new(plan, |_, bytes| SlotMut::alone(&crate::Pageable, bytes)).unwrap();
        for row in 0..4 {
            for column in grid.columns::<Vec<_>>(row..row + 1) {
                column.fill(row as u8 + 1);
            }
        }
        let all = grid.columns::<Vec<_>>(0..4);
        assert_eq!(all[0], [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]);
        assert_eq!(all[1][..6], [1, 1, 1, 1, 1, 2]);
    }
}
