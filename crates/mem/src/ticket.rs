//! A ticket: one batch's place in the order, and its rows to be made.
//!
//! Threads take rows of it in chunks ([`Claim`]). Whoever ends the last chunk
//! gets the whole of it back ([`Finished`]), alone.

use std::fmt;
use std::ops::Range;
use std::sync::Arc as StdArc;
use std::sync::atomic::AtomicBool;

use crate::grid::Grid;
use crate::queue::Desk;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, lock};

/// One batch's place in the order: `rows` rows to be made, and what the makers
/// need to know (`T`).
pub(crate) struct Ticket<T, R> {
    /// Its number in its lane, from 0.
    pub(crate) number: u64,
    pub(crate) rows: usize,
    payload: T,
    /// Where its result is put.
    desk: Arc<Desk<T, R>>,
    /// Rows made. The last adder has the ticket to itself.
    done: AtomicUsize,
    /// The memory, once it is known what is needed. Taken by the last.
    grid: Mutex<Option<Arc<Grid>>>,
}

impl<T, R> Ticket<T, R> {
    pub(crate) fn new(number: u64, rows: usize, payload: T, desk: Arc<Desk<T, R>>) -> Self {
        Ticket { number, rows, payload, desk, done: AtomicUsize::new(0), grid: Mutex::new(None) }
    }
}

/// Some rows of a ticket, for one thread to make.
///
/// A claim that is dropped or forgotten unfinished wastes its ticket: nobody
/// gets it back, and the lane waits for it until its timeout. Code that may
/// panic between `claim` and `finish` is caught there.
///
/// I4: the claims of a ticket are disjoint. A queue hands them out under its
/// lock, from one cursor that only grows; a claim can not be copied.
///
/// ```compile_fail,E0599
/// # use std::sync::atomic::AtomicBool;
/// # let queue = pinfeed_mem::Queue::<(), ()>::new(1);
/// let claim = queue.claim(&AtomicBool::new(false)).unwrap();
/// let same_rows = claim.clone();
/// ```
///
/// Finishing ends the access to its rows, whether it is tried after
///
/// ```compile_fail,E0382
/// # use std::sync::atomic::AtomicBool;
/// # let queue = pinfeed_mem::Queue::<(), ()>::new(1);
/// let mut claim = queue.claim(&AtomicBool::new(false)).unwrap();
/// claim.finish();
/// claim.columns::<Vec<_>>(0..1); // moved
/// ```
///
/// or by what was had before:
///
/// ```compile_fail,E0505
/// # use std::sync::atomic::AtomicBool;
/// # let queue = pinfeed_mem::Queue::<(), ()>::new(1);
/// let mut claim = queue.claim(&AtomicBool::new(false)).unwrap();
/// let (_, columns) = claim.columns::<Vec<_>>(0..1);
/// claim.finish();
/// columns.unwrap()[0][0] = 1; // borrowed from the claim
/// ```
#[must_use = "rows that are not finished keep their lane waiting"]
pub struct Claim<T, R> {
    ticket: Arc<Ticket<T, R>>,
    rows: Range<usize>,
    memory: Memory,
}

/// What a claim has of its ticket's memory.
enum Memory {
    /// Not laid out yet, as far as this claim knows.
    Unknown,
    /// The claim has all rows of the ticket, so the memory is its own.
    Whole(Grid),
    /// Other claims have the other rows.
    Share(Arc<Grid>),
}

impl<T, R> Claim<T, R> {
    /// The caller keeps I4.
    pub(crate) fn new(ticket: Arc<Ticket<T, R>>, rows: Range<usize>) -> Self {
        Claim { ticket, rows, memory: Memory::Unknown }
    }

    /// The rows.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// All rows of the ticket.
    pub fn ticket_rows(&self) -> usize {
        self.ticket.rows
    }

    /// The ticket's number in its lane, from 0.
    pub fn number(&self) -> u64 {
        self.ticket.number
    }

    /// What the ticket was issued with.
    pub fn payload(&self) -> &T {
        &self.ticket.payload
    }

    /// What can be done for the ticket if this claim gets lost: a panic between
    /// here and [`finish`](Claim::finish) would leave its lane waiting for ever.
    pub fn rescue(&self) -> Rescue<T, R> {
        Rescue { ticket: Arc::clone(&self.ticket) }
    }

    /// Was the lane dropped? Nobody waits for these rows then.
    pub fn cancelled(&self) -> &StdArc<AtomicBool> {
        self.ticket.desk.cancelled()
    }

    /// Has the claim all rows of its ticket?
    fn is_whole(&self) -> bool {
        self.rows.len() == self.ticket.rows
    }

    /// Has the ticket been laid out?
    pub fn is_laid(&mut self) -> bool {
        if matches!(self.memory, Memory::Unknown)
            && !self.is_whole()
            && let Some(grid) = &*lock(&self.ticket.grid)
        {
            self.memory = Memory::Share(Arc::clone(grid));
        }
        !matches!(self.memory, Memory::Unknown)
    }

    /// Gives the ticket its memory, unless another thread was first: `grid` is
    /// called until it has given memory, and no other claim of the ticket is
    /// laid out meanwhile.
    ///
    /// # Errors
    /// Those of `grid`; the ticket then still has no memory.
    ///
    /// # Panics
    /// If the grid has not as many rows as the ticket.
    pub fn lay<E>(&mut self, grid: impl FnOnce(&T) -> Result<Grid, E>) -> Result<(), E> {
        let make = || {
            let grid = grid(&self.ticket.payload)?;
            assert_eq!(grid.plan().rows(), self.ticket.rows, "a grid of another size");
            Ok(grid)
        };
        if self.is_whole() {
            if let Memory::Unknown = self.memory {
                self.memory = Memory::Whole(make()?);
            }
            return Ok(());
        }
        let mut place = lock(&self.ticket.grid);
        let grid = match &*place {
            Some(grid) => Arc::clone(grid),
            None => Arc::clone(place.insert(Arc::new(make()?))),
        };
        self.memory = Memory::Share(grid);
        Ok(())
    }

    /// What the ticket was issued with, and the memory of `rows`, column by
    /// column; no memory before the ticket is laid out.
    ///
    /// # Panics
    /// If the claim has not all of these rows.
    pub fn columns<'a, C: FromIterator<&'a mut [u8]>>(
        &'a mut self,
        rows: Range<usize>,
    ) -> (&'a T, Option<C>) {
        assert!(
            self.rows.start <= rows.start && rows.end <= self.rows.end,
            "rows {rows:?} of a claim of {:?}",
            self.rows
        );
        self.is_laid();
        let columns = match &mut self.memory {
            Memory::Unknown => None,
            Memory::Whole(grid) => Some(grid.columns(rows)),
            // SAFETY: these rows are this claim's alone (I4, checked above),
            // and `&mut self` makes this the only use of them. Nobody takes
            // the grid out of the ticket before this claim is finished
            // (`finish` consumes it).
            Memory::Share(grid) => Some(unsafe { grid.columns_shared(rows) }),
        };
        (&self.ticket.payload, columns)
    }

    /// The rows are made. The last claim of a ticket gets it back.
    ///
    /// In a process forked since the lane was made nobody does: the rows are
    /// the parent's to make.
    pub fn finish(self) -> Option<Finished<T, R>> {
        let whole = self.is_whole();
        let Claim { ticket, rows, memory } = self;
        if !ticket.desk.is_here() {
            return None;
        }
        if whole {
            let grid = match memory {
                Memory::Whole(grid) => Some(grid),
                Memory::Unknown | Memory::Share(_) => None,
            };
            return Some(Finished { ticket, grid });
        }
        // Before the rows count as done, so that the last finds itself alone.
        drop(memory);
        // AcqRel: the last sees what the others wrote.
        let before = ticket.done.fetch_add(rows.len(), Ordering::AcqRel);
        if before + rows.len() < ticket.rows {
            return None;
        }
        let grid = lock(&ticket.grid).take();
        let grid = grid.map(|grid| {
            Arc::try_unwrap(grid).expect("every claim drops its share before it counts its rows")
        });
        Some(Finished { ticket, grid })
    }
}

impl<T, R> fmt::Debug for Claim<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("ticket", &self.ticket.number)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

/// A ticket whose rows are all made. One that is not delivered keeps its lane
/// waiting.
#[must_use = "a ticket that is not delivered keeps its lane waiting"]
pub struct Finished<T, R> {
    ticket: Arc<Ticket<T, R>>,
    /// The memory, if it was ever laid out.
    pub grid: Option<Grid>,
}

impl<T, R> Finished<T, R> {
    /// The ticket's number in its lane, from 0.
    pub fn number(&self) -> u64 {
        self.ticket.number
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.ticket.rows
    }

    /// What the ticket was issued with.
    pub fn payload(&self) -> &T {
        &self.ticket.payload
    }

    /// Hands the ticket's result to the owner of its lane.
    pub fn deliver(self, result: R) {
        let desk = Arc::clone(&self.ticket.desk);
        desk.deliver(self.ticket, result);
    }
}

impl<T, R> fmt::Debug for Finished<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finished")
            .field("ticket", &self.ticket.number)
            .field("grid", &self.grid)
            .finish_non_exhaustive()
    }
}

/// See [`Claim::rescue`].
pub struct Rescue<T, R> {
    ticket: Arc<Ticket<T, R>>,
}

impl<T, R> Rescue<T, R> {
    /// Hands over a result for a ticket whose claim is lost.
    pub fn deliver(self, result: R) {
        let desk = Arc::clone(&self.ticket.desk);
        desk.deliver(self.ticket, result);
    }
}

impl<T, R> fmt::Debug for Rescue<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rescue").field("ticket", &self.ticket.number).finish()
    }
}
