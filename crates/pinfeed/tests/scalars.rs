//! Samples of one scalar fill their column in a loop of its own: what holds
//! for every other sample holds for them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use pinfeed::{DataLoader, from_fn, try_from_fn};

#[test]
fn a_worker_leaves_at_its_next_sample() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let data = from_fn(4096, move |i| {
        seen.fetch_add(1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(2));
        i as f32
    });
    let loader = DataLoader::builder(data).batch_size(1024).num_workers(1).build().unwrap();
    let pass = loader.iter();
    while calls.load(Ordering::SeqCst) < 5 {
        thread::sleep(Duration::from_millis(1));
    }
    drop(pass);
    let before = calls.load(Ordering::SeqCst);
    thread::sleep(Duration::from_millis(300));
    let after = calls.load(Ordering::SeqCst);
    assert!(after <= before + 2, "{} samples after the drop", after - before);
}

#[test]
fn a_timeout_names_the_sample() {
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let data = from_fn(64, move |i| {
        while i == 37 && !gate.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        i as f32
    });
    let loader = DataLoader::builder(data)
        .batch_size(64)
        .num_workers(1)
        .timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    let mut pass = loader.iter();
    let error = pass.next().unwrap().unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(error.index(), Some(37), "{error}");
    open.store(true, Ordering::SeqCst);
    assert_eq!(pass.next().unwrap().unwrap().len(), 64);
}

/// The sample that fails is asked for once, by whichever way.
#[test]
fn a_failing_sample_is_asked_for_once() {
    for workers in [0, 2] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let data = try_from_fn(32, move |i| {
            log.lock().unwrap().push(i);
            if i == 20 { Err("bad".into()) } else { Ok(i as i64) }
        });
        let loader = DataLoader::builder(data).batch_size(8).num_workers(workers).build().unwrap();
        let errors: Vec<_> = loader.iter().filter_map(Result::err).collect();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].index(), Some(20));
        let times = asked.lock().unwrap().iter().filter(|&&i| i == 20).count();
        assert_eq!(times, 1);
    }
}
