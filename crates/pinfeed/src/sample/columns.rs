//! [`Columns`]: the memory of some rows, field by field.

/// So many columns need no allocation.
pub(crate) const FEW: usize = 4;

/// For each field, in order, the bytes of all rows, row after row. A field
/// without bytes in the slot has an empty slice.
///
/// Up to four without an allocation: one is made for every chunk of rows. (A
/// `SmallVec` would be invariant in its lifetime, and `Row` with it.)
pub(crate) struct Columns<'a> {
    few: [&'a mut [u8]; FEW],
    /// All of them, if there are more than four.
    many: Vec<&'a mut [u8]>,
    len: usize,
}

impl<'a> Columns<'a> {
    pub(crate) fn new() -> Self {
        Columns { few: [&mut [], &mut [], &mut [], &mut []], many: Vec::new(), len: 0 }
    }

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [&'a mut [u8]] {
        if self.len <= self.few.len() { &mut self.few[..self.len] } else { &mut self.many }
    }

    /// One of the first columns, if there are no more than a few at all.
    #[inline]
    pub(crate) fn few(&mut self, field: usize) -> Option<&mut [u8]> {
        self.few.get_mut(field).map(|column| &mut **column)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, field: usize) -> Option<&mut [u8]> {
        self.as_mut_slice().get_mut(field).map(|column| &mut **column)
    }
}

impl<'a> FromIterator<&'a mut [u8]> for Columns<'a> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = &'a mut [u8]>>(columns: I) -> Self {
        let mut all = Self::new();
        for column in columns {
            if let Some(place) = all.few.get_mut(all.len) {
                *place = column;
            } else {
                if all.many.is_empty() {
                    all.many.extend(all.few.iter_mut().map(std::mem::take));
                }
                all.many.push(column);
            }
            all.len += 1;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many() {
        for count in [0, 1, 4, 5, 9] {
            let mut bytes: Vec<u8> = (0..count).collect();
            let mut columns: Columns<'_> = bytes.chunks_mut(1).collect();
            let seen: Vec<u8> = columns.as_mut_slice().iter().map(|c| c[0]).collect();
            assert!(seen.iter().copied().eq(0..count));
            assert!(columns.get_mut(count as usize).is_none());
        }
    }
}
