//! The layout of a batch: what its samples consist of, and where each field
//! lies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pinfeed_mem::{Grid, Plan};

use crate::error::{Error, Kind as ErrorKind, Result};
use crate::memory::Memory;
use crate::sample::{Kind, Spec};

/// Where the fields of a batch lie in its slots.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) spec: Spec,
    pub(crate) plan: Arc<Plan>,
    /// The batch dimension; none if the shapes of `spec` are the batch's own
    /// (a collate function of the user's).
    pub(crate) lead: Option<usize>,
}

impl Layout {
    /// For `rows` samples of `spec`.
    ///
    /// # Errors
    /// If a batch of that many would have more bytes than memory can hold.
    pub(crate) fn of_samples(spec: Spec, rows: usize) -> Result<Arc<Self>> {
        Self::new(spec, rows, Some(rows))
    }

    /// For one batch whose fields are as `spec` says.
    pub(crate) fn of_batch(spec: Spec) -> Result<Arc<Self>> {
        Self::new(spec, 1, None)
    }

    fn new(spec: Spec, rows: usize, lead: Option<usize>) -> Result<Arc<Self>> {
        let row_bytes = spec.fields.iter().map(|field| field.kind.row_bytes());
        let plan = Plan::new(rows, row_bytes).ok_or_else(|| {
            Error::new(
                ErrorKind::Memory,
                format!(
                    "a batch of {rows} samples of {spec:?} has more bytes than memory can hold"
                ),
            )
            .with_hint("take a smaller batch_size")
        })?;
        Ok(Arc::new(Layout { spec, plan: Arc::new(plan), lead }))
    }

    /// This layout, for another number of samples.
    #[inline]
    pub(crate) fn with_rows(self: &Arc<Self>, rows: usize) -> Result<Arc<Self>> {
        if self.plan.rows() == rows {
            return Ok(Arc::clone(self));
        }
        Self::of_samples(self.spec.clone(), rows)
    }

    /// Memory for it.
    #[inline]
    ///
    /// # Errors
    /// If there is none; also if an allocator of the user's panics.
    pub(crate) fn grid(&self, memory: &Memory) -> Result<Grid> {
        let plan = Arc::clone(&self.plan);
        catch_unwind(AssertUnwindSafe(|| {
            Grid::new(plan, |part, bytes| memory.acquire(part, bytes))
        }))
        .unwrap_or_else(|panic| Err(Error::from_panic(ErrorKind::Memory, panic)))
    }

    /// The shape of a tensor field in the batch.
    pub(crate) fn shape(&self, field: usize) -> crate::sample::Shape {
        let Kind::Tensor { shape, .. } = &self.spec.fields[field].kind else {
            return Default::default();
        };
        self.lead.into_iter().chain(shape.iter().copied()).collect()
    }
}

/// How sample `b` differs from sample `a`: one text, whatever the settings.
pub(crate) fn mismatch(a: (usize, &Spec), b: (usize, &Spec)) -> Error {
    let ((a_index, a), (b_index, b)) = (a, b);
    let pairs = a.fields.iter().zip(&b.fields);
    let message = match pairs.enumerate().find(|(_, (x, y))| x != y) {
        Some((position, (x, y))) if x.name != y.name => format!(
            "field {position} of sample {b_index} is called {}, but that of sample {a_index} {}",
            y.name().unwrap_or("by its position"),
            x.name().unwrap_or("by its position"),
        ),
        Some((position, (x, y))) => format!(
            "field {} of sample {b_index} is {}, but that of sample {a_index} is {}",
            x.name().map_or_else(|| position.to_string(), |name| format!("`{name}`")),
            y.kind,
            x.kind,
        ),
        None => format!(
            "sample {b_index} has {} fields, but sample {a_index} has {}",
            b.fields.len(),
            a.fields.len()
        ),
    };
    Error::new(ErrorKind::Collate, message)
        .at_index(b_index)
        .with_hint("give the samples of a batch one layout, or collate them yourself")
}
