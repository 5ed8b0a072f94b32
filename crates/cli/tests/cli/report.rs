//! The JSON: its keys, and that its figures are those of the run.

use serde_json::{Value, json};

use crate::run::{bench, run, write_images, write_png};

/// The page size that [`pinfeed::mem`] rounds to.
fn in_pages(bytes: usize) -> usize {
    pinfeed::mem::round_to_pages(bytes)
}

fn f(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn near(a: f64, b: f64, by: f64) -> bool {
    (a - b).abs() <= by
}

#[test]
fn says_what_was_measured() {
    let report = bench("");
    assert_eq!(
        report["data"],
        json!({
            "kind": "synthetic", "path": null, "samples": 1000, "classes": 10,
            "sample_shape": [3, 32, 32], "sample_dtype": "f32",
        })
    );
    assert_eq!(
        report["settings"],
        json!({
            "batch_size": 64, "num_workers": 2, "work_ms": 1, "runs": 2, "device": "cpu",
            "shuffle": true, "seed": 0,
        })
    );
    assert!(report["machine"]["cpus"].as_u64().unwrap() > 0);
    assert_eq!(report["machine"]["gpu"], Value::Null);
    // 16 batches.
    assert_eq!(report["floor_s"], 0.016);
    assert!(report["verdict"].as_str().unwrap().contains("pin_memory made no difference"));
    assert_eq!(report.as_object().unwrap().len(), 6);
}

#[test]
fn has_a_result_for_each_setting() {
    let report = bench("");
    let results = report["results"].as_array().unwrap();
    let names: Vec<_> =
        results.iter().map(|r| (r["pin_memory"].as_str(), r["policy"].as_str())).collect();
    assert_eq!(
        names,
        [
            (Some("off"), Some("ordinary memory")),
            (Some("on"), Some("ordinary memory (no CUDA yet)")),
        ]
    );
    let keys = "pin_memory policy is_pinned is_os_locked device epochs_s mean_s work_s \
                overhead_percent first_epoch_overhead_percent samples samples_per_s \
                first_batch_ms pinned_bytes locked_bytes slots warnings channel_mean label_counts \
                loading_s";
    for result in results {
        let mut found: Vec<_> = result.as_object().unwrap().keys().collect();
        let mut expected: Vec<_> = keys.split_whitespace().collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        for nothing in ["is_pinned", "is_os_locked"] {
            assert_eq!(result[nothing], false, "{nothing}");
        }
        for nothing in ["pinned_bytes", "locked_bytes"] {
            assert_eq!(result[nothing], 0, "{nothing}");
        }
        assert_eq!((&result["device"], &result["samples"]), (&json!("cpu"), &json!(1000)));
        assert_eq!(
            (&result["channel_mean"], &result["label_counts"]),
            (&Value::Null, &Value::Null)
        );
        // 2 workers x 2 read ahead + the one in hand.
        assert_eq!(result["slots"], 5);
    }
    // What the loader warned of stands with the setting that it is about.
    let warned = |i: usize| results[i]["warnings"].to_string().contains("no CUDA yet");
    assert_eq!([warned(0), warned(1)], [false, true]);
}

#[test]
fn the_figures_hang_together() {
    let report = bench("--runs 4 --pin-memory off");
    let result = &report["results"][0];
    let epochs: Vec<f64> = result["epochs_s"].as_array().unwrap().iter().map(f).collect();
    assert_eq!(epochs.len(), 4);
    let mean = epochs.iter().sum::<f64>() / 4.0;
    assert!(near(f(&result["mean_s"]), mean, 2e-6), "{result}");
    assert!(near(f(&result["samples_per_s"]), 1000.0 / mean, 1.0 / mean), "{result}");
    // Sleeps are never too short, and an epoch is never shorter than its work.
    let work = f(&result["work_s"]);
    assert!(f(&report["floor_s"]) <= work && work <= mean, "{result}");
    assert!(f(&result["overhead_percent"]) >= 0.0, "{result}");
    let first_batch = f(&result["first_batch_ms"]) / 1e3;
    assert!(0.0 < first_batch && first_batch < epochs.iter().copied().fold(0.0, f64::max));
}

#[test]
fn one_epoch_is_its_own_measure() {
    let report = bench("--runs 1 --pin-memory off");
    let result = &report["results"][0];
    let (took, work) = (f(&result["epochs_s"][0]), f(&result["work_s"]));
    let over = f(&result["overhead_percent"]);
    assert!(near(over, (took - work) / work * 100.0, 0.1 + over / 1e3), "{result}");
    assert_eq!(result["overhead_percent"], result["first_epoch_overhead_percent"]);
}

#[test]
fn without_work_nothing_is_a_share_of_it() {
    let report = bench("--work-ms 0 --pin-memory off");
    let result = &report["results"][0];
    assert_eq!((f(&report["floor_s"]), f(&result["work_s"])), (0.0, 0.0));
    for name in ["overhead_percent", "first_epoch_overhead_percent", "loading_s"] {
        assert_eq!(result[name], Value::Null, "{name}");
    }
    assert!(f(&result["samples_per_s"]) > 0.0);
    assert!(report["verdict"].as_str().unwrap().starts_with("There is no work to hide behind"));
}

/// The work can not hide a loading that takes longer, and the verdict knows.
#[test]
fn slow_loading_is_called_slow() {
    let report = bench("--num-workers 1 --batch-size 5000 --pin-memory off --data synthetic:20000");
    let result = &report["results"][0];
    assert!(f(&result["overhead_percent"]) > 5.0, "{result}");
    assert!(f(&result["loading_s"]) > 0.0, "{result}");
    let verdict = report["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("Loading takes longer than the work"), "{verdict}");
}

/// Without workers it is the loading that the epoch is longer by.
#[test]
fn without_workers_nothing_overlaps() {
    let report = bench("--num-workers 0 --batch-size 500 --pin-memory off");
    let result = &report["results"][0];
    assert!(f(&result["overhead_percent"]) > 0.0, "{result}");
    assert_eq!(result["loading_s"], Value::Null);
    assert!(
        report["verdict"].as_str().unwrap().contains("without workers")
            || report["verdict"].as_str().unwrap().contains("there are no workers")
    );
}

#[test]
fn locked_bytes_are_those_of_the_slots() {
    // Five slots for 8 images of 12 KiB and 8 labels. The binary has the
    // limits of this process.
    let (slab, small) = (8 * 3 * 32 * 32 * 4, 8 * 8);
    let bytes = 5 * (in_pages(slab) + in_pages(small));
    if let Some(limit) = pinfeed::mem::lock_limit()
        && limit < bytes as u64
    {
        eprintln!("skipped: locked_bytes_are_those_of_the_slots: RLIMIT_MEMLOCK is {limit}");
        return;
    }
    let report = bench("--pin-memory lock --batch-size 8");
    let result = &report["results"][0];
    assert_eq!(result["pin_memory"], "lock");
    assert_eq!(result["policy"], "locked by the system (mlock)");
    assert_eq!((&result["is_os_locked"], &result["is_pinned"]), (&json!(true), &json!(false)));
    assert_eq!((&result["slots"], &result["locked_bytes"]), (&json!(5), &json!(bytes)));
    assert_eq!(result["pinned_bytes"], 0);
    let verdict = report["verdict"].as_str().unwrap();
    assert!(verdict.contains("of memory locked by the system"), "{verdict}");
}

#[test]
fn verify_counts_labels_and_sums_pixels() {
    let report = bench("--verify --pin-memory off");
    let result = &report["results"][0];
    assert_eq!(result["label_counts"], json!(vec![100; 10]));
    let means = result["channel_mean"].as_array().unwrap();
    assert_eq!(means.len(), 3);
    // Noise: evenly from 0 to 1.
    assert!(means.iter().all(|mean| near(f(mean), 0.5, 0.01)), "{means:?}");
    // Not one of the timed epochs.
    assert_eq!(result["epochs_s"].as_array().unwrap().len(), 2);

    let here = tempfile::tempdir().unwrap();
    write_images(&here.path().join("images"));
    let args = "bench --data images --batch-size 3 --num-workers 1 --work-ms 0 --runs 1 --verify";
    let report = run(here.path(), &format!("{args} --json -")).json();
    for result in report["results"].as_array().unwrap() {
        assert_eq!(result["label_counts"], json!([3, 1]));
        let means: Vec<f64> = result["channel_mean"].as_array().unwrap().iter().map(f).collect();
        for (mean, expected) in means.iter().zip([1.0, 0.2, 0.2]) {
            assert!(near(*mean, expected, 1e-6), "{means:?}");
        }
    }
}

#[test]
fn a_shape_that_varies_is_none() {
    let here = tempfile::tempdir().unwrap();
    write_png(&here.path().join("images/cat/1.png"), [4, 2], [0; 3]);
    write_png(&here.path().join("images/cat/2.png"), [5, 3], [0; 3]);
    let args = "bench --data images --batch-size 1 --num-workers 1 --work-ms 0 --runs 1 --json -";
    let report = run(here.path(), args).json();
    assert_eq!(report["data"]["sample_shape"], Value::Null);
    assert_eq!(report["data"]["sample_dtype"], "f32");
}
