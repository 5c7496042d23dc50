#!/usr/bin/env python3
"""Our kernels give the reference's verdict table: `verdicts.py ASSAY [options of assay run]` runs the
suite on both, and fails where a case of --iut gpu has another state than the reference's. NOT_CLAIMED are
draft vocabularies, and traces of Ouroboros, whose drafter is the reference's own. On the grid emulator, which --iut gpu
then says it uses, at level smoke and with 2,000 samples, exactly the cases with more than 64 tokens are UNAVAILABLE
instead."""
import collections
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LARGEST = 64
BEYOND = "needs a GPU; the grid emulator serves"
OF_258 = re.compile(r"(lm|engine)\.\w+/(draft|target|self|trained)-")  # cases of the trained pair
WIDE = re.compile(r"engine\.models/wide")
LACKING = re.compile(r"trace\.ouroboros|engine\.\w+/pruned-")
EMULATED = {"level": "smoke", "samples": 2000}


def report(assay, iut, options, folder):
    file = Path(folder) / f"{iut}.json"
    done = subprocess.run([assay, "run", "--iut", iut, "--json", file, *options], capture_output=True, text=True)
    if done.returncode not in (0, 4):
        sys.exit(f"{done.stdout}{done.stderr}\nassay run --iut {iut} exits with {done.returncode}")
    return json.loads(file.read_text())


def vocabulary(name):
    """As its id says; few tokens where it says nothing."""
    said = re.search(r"\b[vV](\d+)\b", name)
    return int(said.group(1)) if said else 258 if OF_258.match(name) else 70001 if WIDE.match(name) else 0


def due_state(case, emulated):
    if LACKING.search(case["case"]):
        return "NOT_CLAIMED"
    if emulated and vocabulary(case["case"]) > LARGEST and case["state"] != "NOT_CLAIMED":
        return "UNAVAILABLE"
    return case["state"]


def main():
    assay, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        ours = report(assay, "gpu", options, folder)
        same = ["--level", ours["level"], *(["--samples", str(ours["samples"])] if ours["samples"] else [])]
        ref = report(assay, "ref", options + same, folder)
    device = ours["identity"]["device"]
    emulated = device.startswith("grid emulator")
    wrong = [f"on the emulator {key} is {ours[key]}, not {value}" for key, value in EMULATED.items()
             if emulated and ours[key] != value]
    if emulated and (Path(assay).parent / "lib/assay/libassay_gpu.so").exists() != ("(GPU: " in device):
        wrong.append(f"the device \"{device}\" does not say why it is the emulator")
    due = {case["case"]: due_state(case, emulated) for case in ref["cases"]}
    got = {case["case"]: case for case in ours["cases"]}
    for name in sorted(set(got) & set(due)):
        case = got[name]
        if case["state"] != due[name]:
            wrong.append(f"{name}: {case['state']}, not {due[name]}: {case['detail']}")
        elif case["state"] == "UNAVAILABLE" and BEYOND not in case["detail"]:
            wrong.append(f"{name}: UNAVAILABLE, but not for its vocabulary: {case['detail']}")
    # Which cases are drawn follows the claims (VER-11), and the reference claims more.
    wrong += [f"{name}: on one side alone" for name in sorted(set(got) ^ set(due)) if "/drawn/" not in name]
    print(*wrong, sep="\n")
    count = collections.Counter(case["state"] for case in got.values())
    print(f"{device}: {len(got)} cases:", ", ".join(f"{n} {state}" for state, n in sorted(count.items())))
    return 1 if wrong or not count["PASS"] else 0


if __name__ == "__main__":
    sys.exit(main())
