#!/usr/bin/env python3
"""The benches on the grid emulator: they run dry, write the JSON and the table that they promise, and
report no time. `bench_test.py PROGRAM KIND LEAST`: LEAST is how many results of the KIND there are."""
import json
import pathlib
import subprocess
import sys
import tempfile

TIMES = ("us", "share", "median", "least", "most", "times_")


def main():
    program, kind, least = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "bench.json"
        out = subprocess.run([program, "--json", str(file)], capture_output=True, text=True, check=True).stdout
        report = json.loads(file.read_text())
    results = [r for r in report["results"] if r["what"] == kind]
    assert report["dry"] is True and "dry run: nothing is timed" in out, "the run was not dry"
    assert len(results) >= least, f"{len(results)} results of {kind}, not {least}"
    for r in report["results"]:
        timed = {k: v for k, v in r.items() if any(k.startswith(t) or f"_{t}" in k for t in TIMES)}
        assert timed, f"nothing would be timed: {r}"
        assert all(v is None for v in timed.values()), f"the emulator reports a time: {timed}"
    rows = [line for line in out.splitlines() if line.startswith("| ") and " F" in line]
    assert len({line.count("|") for line in out.splitlines() if line.startswith("|")}) == 2, "ragged tables"
    assert rows, "no table"
    wrong = subprocess.run([program, "--unknown"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "usage:" in wrong.stderr, "an unknown option must be refused"
    print(f"{program}: {len(results)} results, none timed")


main()
