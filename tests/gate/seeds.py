"""Whole runs of the reference with one seed after another: a right implementation is not accused.

seeds.py ASSAY full RUNS    at the full level: every run is CONFORMANT.
seeds.py ASSAY null RUNS    at smoke, with a false-alarm rate of 1 in 20: of the run's e-values no more than that alarm,
                            and their mean is at most 1 but for three standard errors.

The environment variable ASSAY_TEST_SCALE sets the part of the runs that is made (tests/scale.h)."""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

ALPHA = 0.05
LARGEST = 700  # ln E, for its exponential to have a number


def report_of(assay, seed, options):
    """What a run says for programs."""
    with tempfile.NamedTemporaryFile() as file:
        command = [assay, "run", "--iut", "ref", "--seed", str(seed), *options, "--json", file.name]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return json.load(file)


def failures(report):
    return [case["case"] for case in report["cases"] if case["state"] not in ("PASS", "NOT_CLAIMED")]


def every_run_is_conformant(assay, runs):
    wrong = 0
    for seed in range(1, runs + 1):
        report = report_of(assay, seed, ["--level", "full"])
        wrong += report["verdict"] != "CONFORMANT"
        print(f"seed {seed}: {report['verdict']}, {report['tally']['PASS']} passed, {report['seconds']:.0f} s",
              *failures(report), flush=True)
    return wrong


def alarms_are_rare(assay, runs):
    e = []
    for seed in range(1, runs + 1):
        report = report_of(assay, seed, ["--level", "smoke", "--alpha", str(ALPHA)])
        e.append(math.exp(min(report["log_e"], LARGEST)))
        print(f"seed {seed}: {report['verdict']}, ln E {report['log_e']:.2f}", *failures(report), flush=True)
    alarms = sum(value >= 1 / ALPHA for value in e)
    mean, error = statistics.fmean(e), statistics.stdev(e) / math.sqrt(len(e))
    print(f"{alarms} of {runs} runs alarm at {ALPHA}; the mean of E is {mean:.3f}, its standard error {error:.3f}")
    return alarms > ALPHA * runs or mean > 1 + 3 * error


def main(assay, what, runs):
    runs = max(2, round(int(runs) * float(os.environ.get("ASSAY_TEST_SCALE", "1"))))
    sys.exit({"full": every_run_is_conformant, "null": alarms_are_rare}[what](assay, runs) > 0)


main(*sys.argv[1:])
