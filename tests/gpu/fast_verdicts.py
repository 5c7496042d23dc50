#!/usr/bin/env python3
"""The suite against the fast path on the emulator, where the library's twin is known: a fixed shape keeps
what it claims, rows as they come claim less and keep that, and fail where they claim as much.

    fast_verdicts.py ASSAY"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = ("--level", "smoke", "--claims", "lm.*", "--claims", "engine.greedy", "--timeout", "600")
CLAIMED = {"lm.rows", "lm.tree", "lm.rollback", "lm.greedy", "engine.greedy"}


def run(assay, options, *more):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [assay, "run", "--iut", "gpu", "--iut-options", options, *CASES, "--json", report, *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        cases = json.loads(report.read_text())["cases"] if report.exists() else []
    states = {}
    for case in cases:
        states.setdefault(case["check"], set()).add(case["state"])
    print(options, done.returncode, {check: sorted(s) for check, s in sorted(states.items())}, flush=True)
    return done, states


def check(right, options, done):
    if not right:
        sys.exit(f"{options}: not as expected\n{done.stdout}{done.stderr}")


def main():
    assay, quick = sys.argv[1], ("--only", "*long*", "--only", "*few*")
    for storage in ("f32", "bf16"):
        options = f"products=fixed-shape,storage={storage}"
        done, states = run(assay, options, *quick)
        passed = {c for c, s in states.items() if "PASS" in s and s <= {"PASS", "UNAVAILABLE", "NOT_CLAIMED"}}
        check(done.returncode == 0 and passed == CLAIMED, options, done)
        check(states["lm.canonical"] == {"NOT_CLAIMED"}, options, done)
    options = "products=free"
    done, states = run(assay, options, *quick)
    check(done.returncode == 0 and states["lm.rows"] == {"NOT_CLAIMED"} and "PASS" in states["engine.greedy"], options, done)
    check(not any("FAIL" in s for s in states.values()), options, done)
    options = "products=free,promise=identical"
    done, states = run(assay, options, "--only", "lm.rows*long*")
    check(done.returncode == 1 and "FAIL" in states["lm.rows"], options, done)
    for options, text in (("storage=bf16", "options of products="), ("products=fast", "no option products=fast")):
        done, _ = run(assay, options, "--only", "lm.rows*long*")
        check(done.returncode == 3 and text in done.stdout + done.stderr, options, done)


main()
