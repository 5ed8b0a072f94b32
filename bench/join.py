"""Puts the rows of one run together: date, machine, CPUs, commit, then the figures."""

import csv
import datetime
import json
import os
import subprocess
import sys

COLUMNS = "date,machine,cpus,commit,case,setting,unit,pinfeed,beside,beside_value,ratio".split(",")


def main(machine, rows_path, torch_path, json_path):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    head = [datetime.datetime.now().strftime("%FT%T"), machine, os.cpu_count(), commit]
    with open(rows_path) as file:
        rows = [list(row.values()) for row in csv.DictReader(file)]
    with open(torch_path) as file:
        torch = [row for row in csv.reader(file)]
    # Ours with 2 workers, beside PyTorch with as many and with none: whichever
    # of the two is faster is the one to compare with.
    ours = {row[0]: row for row in rows if "in order" in row[1] or "JPEG" in row[0]}
    for case, setting, unit, value in torch:
        if case in ours:
            _, our_setting, _, our_value, *_ = ours[case]
            workers = setting.split()[-1]
            ratio = float(our_value) / float(value)
            beside = f"PyTorch DataLoader ({workers} workers)"
            rows.append([case, our_setting, unit, our_value, beside, value, f"{ratio:.1f}"])
    with open(json_path) as file:
        report = json.load(file)
    for result in report["results"]:
        floor = report["floor_s"]
        setting = f"synthetic, 6 workers, 100 ms, pin_memory {result['pin_memory']}"
        for name in ("overhead_percent", "first_epoch_overhead_percent"):
            rows.append(["main job", setting, name, f"{result[name]:.3f}", f"floor {floor} s", "", ""])
    out = csv.writer(sys.stdout, lineterminator="\n")
    if not os.isatty(1) and os.fstat(1).st_size == 0:
        out.writerow(COLUMNS)
    out.writerows(head + row for row in rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
