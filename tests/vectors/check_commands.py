#!/usr/bin/env python3
"""The commands on the golden vectors: generation gives the committed bytes; the oracle
recomputes them; a folder that lacks one vector, or has one more, is an ERROR; and with every
expectation made wrong no case of replay.vectors or tree.vectors passes.

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
    return done.stdout + done.stderr


def files(folder):
    return sorted(os.path.basename(f) for f in glob.glob(os.path.join(folder, "*.json")) if "schema" not in f)


def states(folder, report, code):
    only = "--only", "replay.vectors*", "--only", "tree.vectors*"
    assay("run", "--vectors", folder, *only, "--json", report, code=code)
    with open(report) as f:
        return {case["case"]: case["state"] for case in json.load(f)["cases"]}


def incomplete(folder, top):
    """One vector of chain.json less, then one more: no run may pass without noticing."""
    name = os.path.join(folder, "chain.json")
    with open(name) as f:
        chain = json.load(f)
    group = next(g for g in chain["groups"] if g["id"] == "chain.zeros.v4")
    tests, count = group["tests"], len(group["tests"])
    surplus = dict(tests[-1], id="chain.zeros.v4.9999")
    for group["tests"] in (tests[:-1], tests + [surplus]):
        with open(name, "w") as f:
            json.dump(chain, f)
        said = assay("vectors", "list", "--vectors", folder, code=3)
        due = f"chain.json: the group chain.zeros.v4 should have {count} vectors, found {len(group['tests'])};"
        if due not in said:
            sys.exit(f"not the message of an incomplete folder: {said}")
        judged = set(states(folder, os.path.join(top, "incomplete.json"), 3).values())
        if judged & {"PASS", "FAIL"}:
            sys.exit(f"judged with an incomplete folder: {judged}")


def main():
    with tempfile.TemporaryDirectory() as top:
        out, wrong = (os.path.join(top, name) for name in ("out", "wrong"))
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
        incomplete(out, top)
        print(f"{len(passed)} cases pass, and fail when their vectors are wrong")


if __name__ == "__main__":
    main()
