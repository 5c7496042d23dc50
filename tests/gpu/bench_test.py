#!/usr/bin/env python3
"""The benches on the grid emulator: they run dry, write the JSON and the table that they promise, and
report no time; what a device runs as graphs is recorded and replayed. `bench_test.py PROGRAM
[PART:]KIND=LEAST...`: how many results of each KIND there are at least, and with which --only they come
alone."""
import json
import pathlib
import subprocess
import sys
import tempfile

TIMES = ("us", "share", "median", "least", "most", "times_")  # begin or are part of their names


def run(program, folder, *options):
    file = pathlib.Path(folder) / "bench.json"
    done = subprocess.run([program, "--json", str(file), *options], capture_output=True, text=True, check=True)
    assert "graph" not in done.stderr, f"what is timed as a graph must be one: {done.stderr}"
    return done.stdout, json.loads(file.read_text())


def check_tables(out):
    """Every row of a table has the cells of its head."""
    width = 0
    for line in out.splitlines():
        bars = line.count("|") if line.startswith("|") else 0
        assert width in (0, bars) or bars == 0, f"ragged table: {line}"
        width = bars


def main():
    program, kinds = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        out, report = run(program, folder)
        for expected in kinds:
            part, _, kind = expected.rpartition(":")
            kind, least = kind.split("=")
            found = sum(r["what"] == kind for r in report["results"])
            assert found >= int(least), f"{found} results of {kind}, not {least}"
            if part:
                alone = [r["what"] for r in run(program, folder, "--only", part)[1]["results"] if "unit" not in r]
                assert alone == [kind] * found, f"--only {part} gives {alone}"
    assert report["dry"] is True and "dry run: nothing is timed" in out, "the run was not dry"
    for r in report["results"]:
        timed = {k: v for k, v in r.items() if any(k.startswith(t) or f"_{t}" in k for t in TIMES)}
        assert timed and r.get("timed", "not") == "not", f"nothing would be timed, or it was: {r}"
        assert all(v is None for v in timed.values()), f"the emulator reports a time: {timed}"
    check_tables(out)
    rows = [line for line in out.splitlines() if line.startswith("| ") and " F" in line]
    assert rows, "no table"
    for options in (["--unknown"], ["--only", "unknown"], ["--only"]):
        wrong = subprocess.run([program, *options], capture_output=True, text=True, check=False)
        assert wrong.returncode == 2 and "usage:" in wrong.stderr, f"{options} must be refused"
    print(f"{program}: {len(report['results'])} results, none timed")


main()
