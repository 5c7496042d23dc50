#!/usr/bin/env python3
"""Our kernels give the reference's verdict table: `verdicts.py ASSAY [options of assay run]` runs the
suite on both, and fails where a case of --iut gpu has another state than the reference's, unless it
is UNAVAILABLE, which only vocabularies beyond the emulator's may be."""
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

BEYOND = "needs a GPU; the grid emulator serves"


def states(assay, iut, options, folder):
    report = Path(folder) / f"{iut}.json"
    command = [assay, "run", "--iut", iut, "--level", "smoke", "--timeout", "600", "--json", report, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 4):
        sys.exit(f"{done.stdout}{done.stderr}\nassay run --iut {iut} exits with {done.returncode}")
    return {case["case"]: case for case in json.loads(report.read_text())["cases"]}


def main():
    assay, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        ours, due = (states(assay, iut, options, folder) for iut in ("gpu", "ref"))
    wrong = []
    for name in set(ours) & set(due):
        if ours[name]["state"] not in (due[name]["state"], "UNAVAILABLE"):
            wrong.append(f"{name}: {ours[name]['state']}, not {due[name]['state']}: {ours[name]['detail']}")
    wrong += [f"{name}: on one side alone" for name in set(ours) ^ set(due)]
    wrong += [f"{name}: UNAVAILABLE, but not for its vocabulary: {case['detail']}" for name, case in ours.items()
              if case["state"] == "UNAVAILABLE" and BEYOND not in case["detail"]]
    print(*wrong, sep="\n")
    count = collections.Counter(case["state"] for case in ours.values())
    print(f"{len(ours)} cases:", ", ".join(f"{n} {state}" for state, n in sorted(count.items())))
    return 1 if wrong or not count["PASS"] else 0


if __name__ == "__main__":
    sys.exit(main())
