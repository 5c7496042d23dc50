#!/usr/bin/env python3
"""The commands on the golden vectors: generation gives the committed bytes, twice; the oracle
recomputes them; and with every expectation made wrong no case of replay.vectors passes.

usage: check_commands.py ASSAY VECTORS
"""
import filecmp
import glob
import json
import os
import subprocess
import sys
import tempfile

ASSAY, VECTORS = sys.argv[1:]


def assay(*arguments, code=0):
    done = subprocess.run([ASSAY, *arguments], capture_output=True, text=True, timeout=300)
    if done.returncode != code:
        sys.exit(f"assay {' '.join(arguments)}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done.stdout


def files(folder):
    return sorted(os.path.basename(f) for f in glob.glob(os.path.join(folder, "*.json")) if "schema" not in f)


def states(folder, report, code):
    assay("run", "--vectors", folder, "--only", "replay.vectors*", "--json", report, code=code)
    with open(report) as f:
        return {case["case"]: case["state"] for case in json.load(f)["cases"]}


def main():
    with tempfile.TemporaryDirectory() as top:
        first, second, wrong = (os.path.join(top, name) for name in ("first", "second", "wrong"))
        for out in (first, second):
            assay("vectors", "generate", "--out", out)
            same, differ, missing = filecmp.cmpfiles(VECTORS, out, files(VECTORS), shallow=False)
            if files(out) != files(VECTORS) or differ or missing:
                sys.exit(f"generated files are not the committed ones: {differ + missing}")
        assay("vectors", "check", "--vectors", VECTORS)
        assay("vectors", "show", "chain.zeros.v4.0001", "--vectors", VECTORS)
        assay("vectors", "show", "chain.zeros.v4.9999", "--vectors", VECTORS, code=2)
        assay("vectors", "list", "--vectors", os.path.join(top, "nowhere"), code=3)
        assay("vectors", "flip", "--out", wrong, "--vectors", VECTORS)
        assay("vectors", "check", "--vectors", wrong, code=1)
        right = states(VECTORS, os.path.join(top, "right.json"), 0)
        flipped = states(wrong, os.path.join(top, "wrong.json"), 1)
        passed = [case for case, state in right.items() if state == "PASS"]
        alive = [case for case in passed if flipped[case] != "FAIL"]
        if not passed or alive:
            sys.exit(f"not noticed with wrong expectations: {alive}")
        print(f"{len(passed)} cases pass, and fail when their vectors are wrong")


if __name__ == "__main__":
    main()
