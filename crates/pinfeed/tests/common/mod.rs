//! What the tests of the loader share: data sets, a gate that holds threads
//! up, limits of time, and what the kernel says of this process.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

use pinfeed::mem::{lock_limit, locked_bytes};
use pinfeed::{Batch, BoxError, Context, Dataset, Error, Result, Row, Rows, Spec};

/// Longer than anything here takes, also on a machine that is busy elsewhere.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A data set of samples that `get` writes, one by one.
pub(crate) struct Samples<F> {
    len: usize,
    get: F,
    spec: Option<Spec>,
}

pub(crate) fn samples<F>(len: usize, get: F) -> Samples<F>
where
    F: Fn(usize, &mut Row<'_>, &mut Context) -> Result<(), BoxError> + Send + Sync,
{
    Samples { len, get, spec: None }
}

impl<F> Samples<F> {
    /// This data set, saying beforehand what its samples consist of.
    pub(crate) fn with_spec(self, spec: Spec) -> Self {
        Samples { spec: Some(spec), ..self }
    }
}

impl<F> Dataset for Samples<F>
where
    F: Fn(usize, &mut Row<'_>, &mut Context) -> Result<(), BoxError> + Send + Sync,
{
    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize, row: &mut Row<'_>, cx: &mut Context) -> Result<(), BoxError> {
        (self.get)(index, row, cx)
    }

    fn spec(&self) -> Option<Spec> {
        self.spec.clone()
    }
}

/// A data set with a `get_many` of its own; its samples are their numbers.
pub(crate) struct Many<F> {
    pub(crate) len: usize,
    /// Samples that can not be made: what `get_many` does about it is its own.
    pub(crate) bad: Bad,
    pub(crate) spec: Option<Spec>,
    pub(crate) get_many: F,
}

#[derive(Clone)]
pub(crate) struct Bad(pub(crate) Vec<usize>);

impl Bad {
    /// Writes a sample that is its number, unless it is bad.
    pub(crate) fn get(&self, index: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
        if self.0.contains(&index) {
            return Err(format!("{index} is bad").into());
        }
        Ok(row.put(index as i64)?)
    }
}

impl<F> Dataset for Many<F>
where
    F: Fn(&Bad, &[usize], &mut Rows<'_>, &mut Context) -> Result<(), BoxError> + Send + Sync,
{
    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize, row: &mut Row<'_>, _: &mut Context) -> Result<(), BoxError> {
        self.bad.get(index, row)
    }

    fn get_many(
        &self,
        indices: &[usize],
        rows: &mut Rows<'_>,
        cx: &mut Context,
    ) -> Result<(), BoxError> {
        (self.get_many)(&self.bad, indices, rows, cx)
    }

    fn spec(&self) -> Option<Spec> {
        self.spec.clone()
    }
}

/// Sample i is the number i.
pub(crate) fn counting(len: usize) -> impl Dataset + 'static {
    samples(len, |index, row, _| Ok(row.put(index as i64)?))
}

/// Sample i is the number i, and takes a while.
pub(crate) fn sleeping(
    len: usize,
    nap: impl Fn(usize) -> Duration + Send + Sync + 'static,
) -> impl Dataset + 'static {
    samples(len, move |index, row, _| {
        thread::sleep(nap(index));
        Ok(row.put(index as i64)?)
    })
}

/// Sample i is the number i, but sample `bad` fails with what `error` makes.
pub(crate) fn failing<E: Into<BoxError>>(
    len: usize,
    bad: usize,
    error: impl Fn() -> E + Send + Sync + 'static,
) -> impl Dataset + 'static {
    samples(len, move |index, row, _| {
        if index == bad {
            return Err(error().into());
        }
        Ok(row.put(index as i64)?)
    })
}

/// Sample i is the number i, but sample `held` waits for the gate.
pub(crate) fn gated(len: usize, held: usize, gate: &Gate) -> impl Dataset + 'static {
    let gate = gate.clone();
    samples(len, move |index, row, _| {
        if index == held {
            gate.pass();
        }
        Ok(row.put(index as i64)?)
    })
}

/// Sample i is the number i, `floats` floats of that value, and two strings
/// that say so.
pub(crate) fn write_rich(index: usize, floats: usize, row: &mut Row<'_>) -> Result<(), BoxError> {
    row.named("id").put(index as i64)?;
    row.named("text").put_text(&"x".repeat(index % 7));
    row.named("image").tensor::<f32>(&[floats])?.fill(index as f32);
    row.named("raw").put_bytes(&index.to_le_bytes()[..index % 8]);
    Ok(())
}

/// Checks a batch of such samples, of which there is one at least, and says
/// which they are.
#[track_caller]
pub(crate) fn check_rich(batch: &Batch, floats: usize) -> Vec<usize> {
    let ids = ids(batch);
    let image = batch.tensor("image").unwrap();
    assert_eq!(image.shape(), [ids.len(), floats]);
    let (text, raw) = (batch.field("text").unwrap(), batch.field("raw").unwrap());
    let pinfeed::BatchField::Text(text) = text else { panic!("{text:?}") };
    let pinfeed::BatchField::Bytes(raw) = raw else { panic!("{raw:?}") };
    for (row, &id) in ids.iter().enumerate() {
        let floats_of_row = image.get(row).unwrap().to_vec::<f32>().unwrap();
        assert!(floats_of_row.iter().all(|&x| x == id as f32), "sample {id}: {floats_of_row:?}");
        assert_eq!(text[row], "x".repeat(id % 7), "sample {id}");
        assert_eq!(raw[row], id.to_le_bytes()[..id % 8], "sample {id}");
    }
    assert_eq!((text.len(), raw.len(), batch.len()), (ids.len(), ids.len(), ids.len()));
    ids
}

/// The samples of a batch whose first field is their number.
#[track_caller]
pub(crate) fn ids(batch: &Batch) -> Vec<usize> {
    let ids = batch.tensor_at(0).unwrap().to_vec::<i64>().unwrap();
    ids.into_iter().map(|id| usize::try_from(id).unwrap()).collect()
}

/// The batches of a pass that has no errors, as numbers of samples.
#[track_caller]
pub(crate) fn all_ids(pass: impl IntoIterator<Item = Result<Batch>>) -> Vec<Vec<usize>> {
    pass.into_iter().map(|batch| ids(&batch.unwrap())).collect()
}

/// 0, 1, 2, ... in batches.
pub(crate) fn in_batches(samples: usize, batch_size: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..samples).collect();
    all.chunks(batch_size).map(<[usize]>::to_vec).collect()
}

/// What an error says, without the number of the worker: that is not the
/// same from run to run.
pub(crate) fn text_without_worker(error: &Error) -> String {
    let text = error.to_string();
    let Some(worker) = error.worker() else { return text };
    let named = format!("worker {worker}");
    // The place is a list: the worker is the last of it, or all of it.
    text.replacen(&format!(", {named})"), ")", 1).replacen(&format!(" ({named})"), "", 1)
}

/// A gate for threads: closed, until `open` is called or its opener dropped.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<GateInner>);

#[derive(Default)]
struct GateInner {
    open: Mutex<bool>,
    opened: Condvar,
    arrived: AtomicUsize,
    passed: AtomicUsize,
}

impl Gate {
    /// A closed gate, and what opens it at the end of the test, however it
    /// ends: no thread is left behind.
    pub(crate) fn closed() -> (Self, Opener) {
        let gate = Gate::default();
        (gate.clone(), Opener(gate))
    }

    /// Waits until it is open.
    pub(crate) fn pass(&self) {
        self.0.arrived.fetch_add(1, Ordering::SeqCst);
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = self.0.opened.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        drop(open);
        self.0.passed.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn open(&self) {
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.opened.notify_all();
    }

    /// How often a thread has come to the gate.
    pub(crate) fn arrived(&self) -> usize {
        self.0.arrived.load(Ordering::SeqCst)
    }

    /// How often a thread has gone through.
    pub(crate) fn passed(&self) -> usize {
        self.0.passed.load(Ordering::SeqCst)
    }

    /// Waits until a thread has come to it `times` times.
    #[track_caller]
    pub(crate) fn wait_for_arrivals(&self, times: usize) {
        eventually("a thread comes to the gate", || self.arrived() >= times);
    }
}

/// Opens a gate when it is dropped.
pub(crate) struct Opener(Gate);

impl Drop for Opener {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Runs `test` in a thread of its own: one that hangs is a failure, and does
/// not stop the others.
#[track_caller]
pub(crate) fn within<R: Send + 'static>(
    limit: Duration,
    test: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(test));
        // Nobody listens after the limit.
        let _ = done.send(result);
    });
    match is_done.recv_timeout(limit) {
        Ok(result) => {
            thread.join().unwrap();
            result.unwrap_or_else(|panic| resume_unwind(panic))
        }
        Err(RecvTimeoutError::Timeout) => panic!("it hangs: not over after {limit:?}"),
        Err(RecvTimeoutError::Disconnected) => unreachable!("a panic is caught"),
    }
}

/// Waits until something is so, for `LIMIT` at most.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Runs what may take long, and says how long it took.
pub(crate) fn timed<R>(what: impl FnOnce() -> R) -> (R, Duration) {
    let begun = Instant::now();
    let result = what();
    (result, begun.elapsed())
}

static TURN: RwLock<()> = RwLock::new(());

/// Workers that a test has left for good.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// For a test that measures the process: no other runs meanwhile, and no
/// worker of an earlier one is at work.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    let turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
    workers_leave();
    nothing_locked();
    turn
}

/// Waits until all that was locked is given back: a worker that is the last to
/// leave does so, when it leaves.
#[track_caller]
pub(crate) fn nothing_locked() {
    eventually("what was locked is given back", || locked_bytes() == 0);
}

/// Waits until no worker is left, but those left behind on purpose.
#[track_caller]
pub(crate) fn workers_leave() {
    eventually("the workers leave", || worker_threads() == LEFT.load(Ordering::SeqCst));
}

/// So many workers more will never leave, on purpose.
pub(crate) fn leave_behind(workers: usize) {
    LEFT.fetch_add(workers, Ordering::SeqCst);
}

/// For a test that does not, in a binary where others do.
pub(crate) fn among_others() -> RwLockReadGuard<'static, ()> {
    TURN.read().unwrap_or_else(PoisonError::into_inner)
}

/// Worker threads of this process, by their name: one that has not run yet has
/// none.
pub(crate) fn worker_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("pinfeed-")).count()
}

/// Files that this process has open.
pub(crate) fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Memory of this process that is present, in bytes.
pub(crate) fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

/// May this process lock so many bytes? Says so if not.
#[expect(clippy::print_stderr, reason = "a test that skips says why")]
pub(crate) fn may_lock(bytes: usize) -> bool {
    let may = lock_limit().is_none_or(|limit| limit >= locked_bytes() + bytes as u64);
    if !may {
        eprintln!("skipped: this process may not lock {bytes} bytes (ulimit -l)");
    }
    may
}
