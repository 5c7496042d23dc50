#!/usr/bin/env python3
"""The suite against the fast path on the emulator, where the library's twin is known: a fixed shape keeps
what it claims, rows as they come claim less and keep that, and fail where they claim as much.

    fast_verdicts.py ASSAY"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

LEVEL = ("--level", "smoke", "--timeout", "600")
FEW = ("lm.canonical/long-0", "lm.rows/long-chain-*", "lm.greedy/long-alternating-*", "engine.greedy/few-jacobi-stops")
MORE = (*FEW, "lm.rows/long-*", "lm.tree/long-*", "lm.rollback/long-steps-*")
BRANCHES = ("lm.rows/long-siblings-*",)
CLAIMED = {"lm.rows", "lm.greedy", "engine.greedy"}


def run(assay, options, cases):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [assay, "run", "--iut", "gpu", "--iut-options", options, *LEVEL, "--json", report]
        command += [word for case in cases for word in ("--only", case)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        results = json.loads(report.read_text())["cases"] if report.exists() else []
    states = {}
    for case in results:
        states.setdefault(case["check"], set()).add(case["state"])
    print(options, done.returncode, {check: sorted(s) for check, s in sorted(states.items())}, flush=True)
    return done, states


def check(right, options, done):
    if not right:
        sys.exit(f"{options}: not as expected\n{done.stdout}{done.stderr}")


def main():
    assay = sys.argv[1]
    for storage, cases, claimed in (("f32", MORE, CLAIMED | {"lm.tree", "lm.rollback"}), ("bf16", FEW, CLAIMED)):
        options = f"products=fixed-shape,storage={storage}"
        done, states = run(assay, options, cases)
        passed = {c for c, s in states.items() if s == {"PASS"}}
        check(done.returncode == 0 and passed == claimed, options, done)
        check(states["lm.canonical"] == {"NOT_CLAIMED"}, options, done)
    options = "products=free"
    done, states = run(assay, options, FEW)
    check(done.returncode == 0 and states["lm.rows"] == {"NOT_CLAIMED"}, options, done)
    check(states["lm.greedy"] | states["engine.greedy"] <= {"PASS", "ACCEPTABLE"}, options, done)
    options = "products=free,promise=identical"
    done, states = run(assay, options, BRANCHES)
    check(done.returncode == 1 and "FAIL" in states["lm.rows"], options, done)
    for options, text in (("storage=bf16", "options of products="), ("products=fast", "no option products=fast")):
        done, _ = run(assay, options, BRANCHES)
        check(done.returncode == 2 and text in done.stdout + done.stderr, options, done)


main()
