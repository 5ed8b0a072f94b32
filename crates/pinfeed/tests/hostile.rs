//! User code that panics where nobody expects it: on a worker thread, outside
//! of `get`. A batch or an error comes all the same; nothing hangs or aborts.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pinfeed::{BoxError, Context, DataLoader, Dataset, PinMemory, Row, try_from_fn};

fn on_a_worker() -> bool {
    thread::current().name().is_some_and(|name| name.starts_with("pinfeed-"))
}

/// The first item of `items`, which must come soon.
fn first<T: Send + 'static>(mut items: impl Iterator<Item = T> + Send + 'static) -> Option<T> {
    let (give, take) = mpsc::channel();
    thread::spawn(move || give.send(items.next()));
    take.recv_timeout(Duration::from_secs(20)).expect("it hangs")
}

struct LenPanicsOnWorkers;

impl Dataset for LenPanicsOnWorkers {
    fn len(&self) -> usize {
        assert!(!on_a_worker(), "asked for its length by a worker");
        64
    }

    fn get(&self, index: usize, row: &mut Row<'_>, _: &mut Context) -> Result<(), BoxError> {
        Ok(row.put(index as f32)?)
    }
}

#[test]
fn workers_do_not_ask_for_the_length() {
    let loader = DataLoader::builder(LenPanicsOnWorkers)
        .batch_size(8)
        .num_workers(2)
        .pin_memory(PinMemory::PageLock)
        .build()
        .unwrap();
    assert_eq!(first(loader.iter()).unwrap().unwrap().len(), 8);
}

/// An error whose drop panics, as long as a worker drops it.
#[derive(Debug)]
struct Bomb;

impl std::fmt::Display for Bomb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a bomb")
    }
}

impl std::error::Error for Bomb {}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!on_a_worker(), "dropped by a worker");
    }
}

#[test]
fn errors_may_panic_when_they_are_dropped() {
    // Two workers fail in one batch: one error is dropped for the other.
    let data = try_from_fn(64, |i| {
        if i >= 28 || i == 25 {
            return Err(Bomb.into());
        }
        if i >= 16 {
            thread::sleep(Duration::from_millis(5));
        }
        Ok((i as f32, 0.0f32))
    });
    let loader = DataLoader::builder(data).batch_size(64).num_workers(2).build().unwrap();
    let error = first(loader.iter()).unwrap().unwrap_err();
    assert_eq!(error.index(), Some(25), "{error}");
}
