//! Data sets one after another.

use super::{Context, Dataset};
use crate::error::{BoxError, Error, Result};
use crate::sample::{Row, Rows, SampleRef, Spec};

/// Data sets one after another, as one.
#[derive(Clone, Debug)]
pub struct ConcatDataset<D> {
    parts: Vec<D>,
    /// For each part, the index after its last sample.
    ends: Vec<usize>,
}

impl<D: Dataset> ConcatDataset<D> {
    /// The samples of the first part, then those of the second, and so on.
    /// Parts of different types go in as `Box<dyn Dataset>`.
    ///
    /// # Errors
    /// If there is no part, or there are more samples than `usize` can count.
    pub fn new(parts: impl Into<Vec<D>>) -> Result<Self> {
        let parts = parts.into();
        if parts.is_empty() {
            return Err(Error::config("ConcatDataset: at least one data set is needed"));
        }
        let mut end = 0usize;
        let mut ends = Vec::with_capacity(parts.len());
        for part in &parts {
            end = end
                .checked_add(part.len())
                .ok_or_else(|| Error::config("ConcatDataset: more samples than usize can count"))?;
            ends.push(end);
        }
        Ok(ConcatDataset { parts, ends })
    }

    /// The data sets, in order.
    pub fn parts(&self) -> &[D] {
        &self.parts
    }

    /// The part that has sample `index`, and its index there.
    fn locate(&self, index: usize) -> (&D, usize) {
        let part = self.ends.partition_point(|&end| end <= index);
        let start = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        (&self.parts[part], index - start)
    }
}

impl<D: Dataset> Dataset for ConcatDataset<D> {
    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn get(&self, index: usize, row: &mut Row<'_>, cx: &mut Context) -> Result<(), BoxError> {
        let (part, index) = self.locate(index);
        part.get(index, row, cx)
    }

    /// By the part's own way, if all samples are of one part: so mostly, where
    /// the order is the data's.
    fn get_many(
        &self,
        indices: &[usize],
        rows: &mut Rows<'_>,
        cx: &mut Context,
    ) -> Result<(), BoxError> {
        let located = indices.iter().map(|&index| self.locate(index));
        let ours = |part: &D| located.clone().all(|(other, _)| std::ptr::eq(part, other));
        match indices.first().map(|&index| self.locate(index).0).filter(|part| ours(part)) {
            Some(part) => {
                let inner: Vec<usize> = located.map(|(_, index)| index).collect();
                part.get_many(&inner, rows, cx)
            }
            None => rows.each(indices, cx, |index, row, cx| self.get(index, row, cx)),
        }
    }

    /// Known only if all parts agree.
    fn spec(&self) -> Option<Spec> {
        let mut specs = self.parts.iter().map(Dataset::spec);
        let first = specs.next()??;
        specs.all(|spec| spec.as_ref() == Some(&first)).then_some(first)
    }

    fn lend(&self, index: usize) -> Option<SampleRef<'_>> {
        let (part, index) = self.locate(index);
        part.lend(index)
    }
}
