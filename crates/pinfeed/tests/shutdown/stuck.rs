//! BO-10: samples that do not end.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pinfeed::{DataLoader, PinMemory};

use crate::common::{
    Gate, LIMIT, all_ids, among_others, eventually, gated, ids, in_batches, samples, timed, within,
};

/// Long enough for any other sample, on a machine that is busy elsewhere.
const TIMEOUT: Duration = Duration::from_millis(500);

/// (a): index 20 sleeps for ever.
#[test]
fn bo_10_a_timeout_names_the_sample() {
    let _turn = among_others();
    for persistent in [false, true] {
        let (gate, _opener) = Gate::closed();
        let data = Arc::new(gated(100, 20, &gate));
        let loader = DataLoader::builder(Arc::clone(&data))
            .num_workers(4)
            .prefetch_factor(2)
            .persistent_workers(persistent)
            .pin_memory(PinMemory::PageLock)
            .timeout(TIMEOUT)
            .build()
            .unwrap();
        within(LIMIT, move || {
            let mut pass = loader.iter();
            let before = all_ids(pass.by_ref().take(20));
            assert_eq!(before, in_batches(20, 1));
            for _ in 0..3 {
                let (error, took) = timed(|| pass.next().unwrap().unwrap_err());
                assert!(error.is_timeout(), "{error}");
                assert!(took >= TIMEOUT && took < TIMEOUT * 10, "the error took {took:?}");
                assert_eq!((error.index(), error.batch()), (Some(20), Some(20)), "{error}");
                let worker = error.worker().expect("the one that is stuck");
                let text = error.to_string();
                assert!(text.contains(&format!("worker {worker} is in sample 20")), "{text}");
                assert_eq!(pass.size_hint(), (80, Some(80)), "the batch is still to come");
            }
            // No second `get` of that index begins while the first runs.
            assert_eq!(gate.arrived(), 1);
            let ((), took) = timed(|| drop(pass));
            assert!(took < Duration::from_secs(2), "the drop took {took:?}");
            // Another pass: the same sample is stuck once more. It can end.
            let mut pass = loader.iter();
            assert_eq!(all_ids(pass.by_ref().take(20)), in_batches(20, 1));
            assert!(pass.next().unwrap().unwrap_err().is_timeout());
            assert_eq!(gate.arrived(), 2);
            gate.open();
            let late = pass.find(|batch| !batch.as_ref().is_err_and(|e| e.is_timeout()));
            assert_eq!(ids(&late.unwrap().unwrap()), [20]);
            assert_eq!(all_ids(pass), in_batches(100, 1)[21..]);
            let ((), took) = timed(|| drop(loader));
            assert!(took < Duration::from_secs(5), "shutdown took {took:?}");
        });
        eventually("the workers leave", || Arc::strong_count(&data) == 1);
    }
}

/// In a batch of several samples, the one that is late is named.
#[test]
fn a_timeout_in_a_batch_of_several() {
    let _turn = among_others();
    for workers in [1, 3] {
        let (gate, _opener) = Gate::closed();
        let loader = DataLoader::builder(gated(40, 17, &gate))
            .batch_size(8)
            .num_workers(workers)
            .timeout(TIMEOUT)
            .build()
            .unwrap();
        within(LIMIT, move || {
            let mut pass = loader.iter();
            assert_eq!(all_ids(pass.by_ref().take(2)), in_batches(16, 8));
            let error = pass.next().unwrap().unwrap_err();
            assert!(error.is_timeout());
            assert_eq!((error.index(), error.batch()), (Some(17), Some(2)), "{error}");
            gate.open();
            assert_eq!(all_ids(pass), in_batches(40, 8)[2..]);
        });
    }
}

/// Where order was not asked for, all others come before the error, which
/// names the sample that is late and not another.
#[test]
fn a_timeout_in_no_order() {
    let _turn = among_others();
    let (gate, _opener) = Gate::closed();
    let loader = DataLoader::builder(gated(40, 0, &gate))
        .batch_size(2)
        .num_workers(2)
        .in_order(false)
        .timeout(TIMEOUT)
        .build()
        .unwrap();
    within(LIMIT, move || {
        let mut pass = loader.iter();
        assert_eq!(pass.by_ref().take(19).filter(Result::is_ok).count(), 19);
        let error = pass.next().unwrap().unwrap_err();
        assert!(error.is_timeout());
        assert_eq!(error.index(), Some(0), "{error}");
        assert!(error.batch().is_none_or(|batch| batch == 0), "{error}");
        gate.open();
        assert_eq!(all_ids(pass), [[0, 1]]);
    });
}

/// A timeout that the clock can not count to is none.
#[test]
fn a_timeout_of_for_ever() {
    let _turn = among_others();
    for persistent in [false, true] {
        let loader = DataLoader::builder(samples(20, |index, row, _| {
            thread::sleep(Duration::from_millis(1));
            Ok(row.put(index as i64)?)
        }))
        .num_workers(2)
        .persistent_workers(persistent)
        .timeout(Duration::MAX)
        .build()
        .unwrap();
        within(LIMIT, move || assert_eq!(all_ids(&loader), in_batches(20, 1)));
    }
}

/// All persistent workers are stuck in samples of an iterator that is gone: a
/// later one gets others, and the loader says who is missing.
#[test]
fn a_stuck_worker_is_replaced() {
    let _turn = among_others();
    for workers in [1, 2] {
        let (gate, _opener) = Gate::closed();
        let held = gate.clone();
        let count = Arc::new(AtomicUsize::new(0));
        let calls = Arc::clone(&count);
        let data = samples(20, move |index, row, cx| {
            calls.fetch_add(1, Ordering::SeqCst);
            if cx.epoch() == 0 {
                held.pass();
            }
            Ok(row.put(index as i64)?)
        });
        let data = Arc::new(data);
        let loader = DataLoader::builder(Arc::clone(&data))
            .num_workers(workers)
            .persistent_workers(true)
            .build()
            .unwrap();
        let pass = loader.iter();
        gate.wait_for_arrivals(workers);
        drop(pass);
        let loader = within(LIMIT, move || {
            for _ in 0..3 {
                assert_eq!(all_ids(&loader), in_batches(20, 1));
            }
            loader
        });
        assert_eq!(gate.passed(), 0);
        let warnings = loader.warnings();
        let stuck: Vec<_> = warnings.iter().filter(|warning| warning.contains("stuck")).collect();
        assert_eq!(stuck.len(), 1, "{warnings:?}");
        for worker in 0..workers {
            assert!(stuck[0].contains(&format!("worker {worker} in sample")), "{stuck:?}");
        }
        // Back from the sample, they find their places taken, and leave.
        gate.open();
        assert_eq!(all_ids(&loader), in_batches(20, 1));
        assert_eq!(count.load(Ordering::SeqCst), workers + 4 * 20);
        drop(loader);
        eventually("the workers leave", || Arc::strong_count(&data) == 1);
    }
}

/// One of two is stuck: the other does the work.
#[test]
fn half_of_the_workers_are_stuck() {
    let _turn = among_others();
    let (gate, _opener) = Gate::closed();
    let held = gate.clone();
    let data = samples(20, move |index, row, cx| {
        if cx.epoch() == 0 && index == 3 {
            held.pass();
        }
        Ok(row.put(index as i64)?)
    });
    let loader = DataLoader::builder(data).num_workers(2).persistent_workers(true).build().unwrap();
    within(LIMIT, move || {
        let mut pass = loader.iter();
        assert_eq!(all_ids(pass.by_ref().take(3)), in_batches(3, 1));
        gate.wait_for_arrivals(1);
        drop(pass);
        for _ in 0..5 {
            assert_eq!(all_ids(&loader), in_batches(20, 1));
        }
    });
}

/// Set for the processes that these tests start: this binary again.
const CHILD: &str = "PINFEED_TEST_CHILD";

/// A process that is stuck, and has said so.
fn child(test: &str) -> std::process::Child {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("stuck now")));
    assert!(said.is_some(), "the child has ended");
    // The rest is read, so that the child can write.
    thread::spawn(move || lines.count());
    child
}

/// Waits for the child's end.
fn ended(mut child: std::process::Child, limit: Duration) -> std::process::ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the process has not ended after {limit:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Two workers are stuck, for good; the program ends all the same.
#[test]
fn the_process_ends_with_a_stuck_worker() {
    for persistent in [false, true] {
        if env::var_os(CHILD).is_none() {
            let child = child("stuck::the_process_ends_with_a_stuck_worker");
            assert!(ended(child, Duration::from_secs(20)).success());
            return;
        }
        let gate = Gate::default();
        let loader = DataLoader::builder(gated(10, 1, &gate))
            .num_workers(2)
            .persistent_workers(persistent)
            .build()
            .unwrap();
        let mut pass = loader.iter();
        assert_eq!(ids(&pass.next().unwrap().unwrap()), [0]);
        gate.wait_for_arrivals(1);
        if persistent {
            println!("stuck now");
        }
    }
}

/// (d): the interrupt is honoured while `next` waits.
#[test]
fn bo_10_interrupted_while_waiting() {
    if env::var_os(CHILD).is_none() {
        let mut child = child("stuck::bo_10_interrupted_while_waiting");
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        if !kill.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no `kill` here");
            child.kill().unwrap();
        }
        let status = ended(child, Duration::from_secs(10));
        assert!(!status.success(), "interrupted: {status}");
        return;
    }
    let gate = Gate::default();
    let loader = DataLoader::builder(gated(10, 1, &gate)).num_workers(2).build().unwrap();
    let mut pass = loader.iter();
    assert_eq!(ids(&pass.next().unwrap().unwrap()), [0]);
    println!("stuck now");
    drop(pass.next());
    unreachable!("sample 1 never comes");
}
