#!/usr/bin/env python3
"""The benches on the grid emulator: they run dry, write the JSON and the table that they promise, and
report no time; what a device runs as graphs is recorded and replayed; what they have measured stays when
they are killed, and when their time is out. `bench_test.py PROGRAM [OPTIONS] [PART:]KIND=LEAST...`: how many results
of each KIND there are at least, and with which --only they come alone."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

TIMES = ("us", "share", "median", "least", "most", "times_")  # begin or are part of their names


def run(program, folder, *options):
    file = pathlib.Path(folder) / "bench.json"
    done = subprocess.run([program, "--json", str(file), *options], capture_output=True, text=True, check=True)
    assert "graph" not in done.stderr, f"what is timed as a graph must be one: {done.stderr}"
    return done.stdout, json.loads(file.read_text())


def results(file):
    """Those in a file, which must be whole whenever there is something in it."""
    text = file.read_text() if file.exists() else ""
    return json.loads(text)["results"] if text else []


def stopped(child, file):
    """How many results there are. Nothing is written meanwhile, which would be read half."""
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    return len(results(file))


def check_killed(program, folder):
    """Killed in its middle, the program leaves a whole document, and the lines that it wrote."""
    file, log = pathlib.Path(folder) / "killed.json", pathlib.Path(folder) / "log"
    with open(log, "wb") as out, subprocess.Popen([program, "--json", str(file)], stdout=out) as child:
        while child.poll() is None and stopped(child, file) < 7:
            child.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        child.kill()
    assert child.returncode == -9 and len(results(file)) >= 7, f"it ended by itself: {child.returncode}"
    lines = [line for line in log.read_text().splitlines() if line.startswith("| ") and " - | - |" in line]
    assert len(lines) >= 6, f"lines that were lost: {log.read_text()}"


def check_time(program, folder):
    """A program that knows its limit ends by itself, whole, and says why."""
    for limit in (["--seconds", "0.001"], []):
        file = pathlib.Path(folder) / "short.json"
        environment = dict(os.environ, GPU_PART_SECONDS="1000" if limit else "0.001")
        began = time.monotonic()
        done = subprocess.run([program, "--json", str(file), *limit], capture_output=True, text=True, check=False,
                              env=environment)
        assert done.returncode == 124 and time.monotonic() - began < 20, f"{done.returncode}, {done.stderr}"
        assert "The rest was not measured: out of time." in done.stdout and done.stderr == "bench: out of time\n"
        assert results(file)[-1]["what"] == "ended" and results(file)[-1]["why"] == "out of time", results(file)
    for limit in ("0", "-1", "5x", "nan", ""):
        wrong = subprocess.run([program, "--seconds", limit], capture_output=True, text=True, check=False)
        assert wrong.returncode == 2 and "usage:" in wrong.stderr, f"--seconds '{limit}' must be refused"


def check_tables(out):
    """Every row of a table has the cells of its head."""
    width = 0
    for line in out.splitlines():
        bars = line.count("|") if line.startswith("|") else 0
        assert width in (0, bars) or bars == 0, f"ragged table: {line}"
        width = bars


def main():
    program, given, kinds = sys.argv[1], [], sys.argv[2:]
    while kinds[0].startswith("--"):
        given, kinds = given + kinds[:2], kinds[2:]
    with tempfile.TemporaryDirectory() as folder:
        out, report = run(program, folder, *given)
        for expected in kinds:
            part, _, kind = expected.rpartition(":")
            kind, least = kind.split("=")
            found = sum(r["what"] == kind for r in report["results"])
            assert found >= int(least), f"{found} results of {kind}, not {least}"
            if part:
                alone = [r["what"] for r in run(program, folder, "--only", part)[1]["results"] if "unit" not in r]
                assert alone == [kind] * found, f"--only {part} gives {alone}"
        check_killed(program, folder)
        check_time(program, folder)
    assert report["dry"] is True and "dry run: nothing is timed" in out, "the run was not dry"
    for r in report["results"]:
        timed = {k: v for k, v in r.items() if any(k.startswith(t) or f"_{t}" in k for t in TIMES)}
        assert timed and r.get("timed", "not") == "not", f"nothing would be timed, or it was: {r}"
        assert all(v is None for v in timed.values()), f"the emulator reports a time: {timed}"
    check_tables(out)
    rows = [line for line in out.splitlines() if line.startswith("| ") and " F" in line]
    assert rows, "no table"
    ceilings = [r["what"] for r in report["results"] if "unit" in r]
    assert ceilings[:3] == ceilings[-3:] and len(ceilings) == 7, f"ceilings, first and last: {ceilings}"
    for options in (["--unknown"], ["--only", "unknown"], ["--only"], ["--models"]):
        wrong = subprocess.run([program, *options], capture_output=True, text=True, check=False)
        assert wrong.returncode == 2 and "usage:" in wrong.stderr, f"{options} must be refused"
    print(f"{program}: {len(report['results'])} results, none timed")


main()
