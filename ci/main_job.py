"""Checks the JSON that `pinfeed bench --json -` prints, from stdin."""

import json
import math
import sys

FIELDS = {
    "": "data settings machine floor_s results verdict",
    "data": "kind path samples classes sample_shape sample_dtype",
    "settings": "batch_size num_workers work_ms runs device",
    "machine": "cpus gpu",
    "results": "pin_memory policy is_pinned is_os_locked device epochs_s mean_s work_s "
    "overhead_percent first_epoch_overhead_percent samples samples_per_s first_batch_ms "
    "pinned_bytes locked_bytes channel_mean label_counts",
}

problems = []


def check(holds, *what):
    if not holds:
        problems.append(" ".join(map(str, what)))


def check_fields(of, value):
    missing = set(FIELDS[of].split()) - value.keys()
    check(not missing, of or "report", "lacks", sorted(missing))


report = json.load(sys.stdin)
check_fields("", report)
check_fields("data", report["data"])
check_fields("settings", report["settings"])
check_fields("machine", report["machine"])

data, settings = report["data"], report["settings"]
check(data["kind"] == "synthetic", "data.kind is", data["kind"])
check(data["samples"] > 0, "no samples")
check(settings["runs"] == 1 and settings["work_ms"] == 5, "settings are", settings)
batches = math.ceil(data["samples"] / settings["batch_size"])
floor = batches * settings["work_ms"] / 1000
check(math.isclose(report["floor_s"], floor, abs_tol=1e-6), "floor_s is", report["floor_s"])
check(report["verdict"], "no verdict")
check(report["results"], "no results")

for result in report["results"]:
    name = f"results[{result.get('pin_memory')}]:"
    check_fields("results", result)
    check(len(result["epochs_s"]) == settings["runs"], name, "epochs_s", result["epochs_s"])
    check(result["samples"] == data["samples"], name, "samples", result["samples"])
    # --verify: every sample came once, and every class is there.
    counts = result["label_counts"]
    check(sum(counts) == data["samples"], name, "label_counts", counts)
    check(len(counts) == data["classes"] and all(counts), name, "label_counts", counts)
    check(all(0 < mean < 1 for mean in result["channel_mean"]), name, result["channel_mean"])
    # Loading can not make an epoch shorter than the work in it.
    check(result["mean_s"] >= report["floor_s"], name, "mean_s", result["mean_s"], "below the floor")
    check(result["samples_per_s"] > 0, name, "samples_per_s", result["samples_per_s"])
    if not report["machine"]["gpu"]:
        check(not result["is_pinned"] and not result["pinned_bytes"], name, "pinned without a GPU")

print(*(f"main-job: {p}" for p in problems), sep="\n", end="\n" if problems else "")
print(f"main-job: {len(report['results'])} results, verdict: {report['verdict']}")
sys.exit(bool(problems))
