//! What goes to stdout, to stderr, and to a file.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::run::{command, run};

const QUICK: &str =
    "bench --data synthetic:300 --batch-size 100 --num-workers 2 --work-ms 1 --runs 1";

#[test]
fn the_table_is_for_people() {
    let here = tempfile::tempdir().unwrap();
    let ran = run(here.path(), &format!("{QUICK} --verify"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "data     noise of CIFAR-10's shape: 300 images in 10 classes (synthetic)",
            &*format!(
                "loader   batch size 100, 2 workers, shuffled (seed 0), device cpu, {}",
                match std::thread::available_parallelism().map_or(1, usize::from) {
                    1 => "1 CPU".to_owned(),
                    cpus => format!("{cpus} CPUs"),
                }
            ),
            "work     1 ms a batch x 3 batches: 3.00 ms an epoch; 1 epoch a setting",
        ]
    );
    assert!(lines[5].starts_with("pin_memory"), "{}", ran.stdout);
    assert!(lines[6].starts_with("off ") && lines[6].ends_with("  ordinary memory"));
    assert!(lines[7].starts_with("on ") && lines[7].ends_with("ordinary memory (no CUDA yet)"));
    assert!(lines[8].starts_with("verified off: 300 samples of 10 classes"), "{}", ran.stdout);
    // One sentence of verdict comes last, behind an empty line.
    assert_eq!((lines.len(), lines[10]), (12, ""));
    assert!(lines[11].ends_with('.'));
}

#[test]
fn each_warning_comes_once() {
    let here = tempfile::tempdir().unwrap();
    let ran = run(here.path(), &format!("{QUICK} --num-workers 1000"));
    for words in ["num_workers is 1000", "no CUDA yet: batches"] {
        let times = ran.stderr.matches(words).count();
        assert_eq!(times, 1, "{words:?} in: {}", ran.stderr);
    }
    assert!(ran.stderr.lines().all(|line| line.starts_with("warning: ")), "{}", ran.stderr);
}

#[test]
fn json_on_stdout_is_alone_there() {
    let here = tempfile::tempdir().unwrap();
    let ran = run(here.path(), &format!("{QUICK} --json -"));
    let verdict = ran.json()["verdict"].as_str().unwrap().to_owned();
    assert!(ran.stderr.contains(&verdict) && ran.stderr.contains("pin_memory"), "{}", ran.stderr);
}

#[test]
fn json_in_a_file_replaces_what_was_there() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("x.json");
    let args = format!("{QUICK} --json x.json");
    fs::write(&file, "x".repeat(100_000)).unwrap();
    for _ in 0..2 {
        let ran = run(here.path(), &args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert!(ran.stdout.ends_with(&format!("\n\n{}\n", report["verdict"].as_str().unwrap())));
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_run_that_fails_leaves_files_alone() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("x.json");
    let args = "bench --data nothing --json x.json";
    run(here.path(), args).refused(&["nothing"]);
    assert!(!file.exists());
    fs::write(&file, "old").unwrap();
    run(here.path(), args).refused(&["nothing"]);
    assert_eq!(fs::read(&file).unwrap(), b"old");
}

#[test]
fn readers_that_leave_are_no_error() {
    let here = tempfile::tempdir().unwrap();
    for args in [QUICK.to_owned(), format!("{QUICK} --json -"), "--help".to_owned()] {
        let mut child = command(here.path(), &args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args}: {stderr}");
        assert!(!stderr.contains("panicked"), "{args}: {stderr}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let here = tempfile::tempdir().unwrap();
    for args in [QUICK.to_owned(), format!("{QUICK} --json -")] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(here.path(), &args).stdout(full).output().unwrap();
        crate::run::Ran::from(output).refused(&["stdout can not be written", "--json FILE"]);
    }
}

#[test]
fn help_and_version_are_for_stdout() {
    let here = tempfile::tempdir().unwrap();
    for (args, words) in [
        ("--help", "bench"),
        ("bench --help", "--pin-memory <WHICH>"),
        ("--version", env!("CARGO_PKG_VERSION")),
    ] {
        let ran = run(here.path(), args);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert!(ran.stdout.contains(words), "{}", ran.stdout);
    }
    // Nothing asked: help, and no success.
    let ran = run(here.path(), "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("Usage: pinfeed"), "{}", ran.stderr);
}
