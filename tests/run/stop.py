#!/usr/bin/env python3
"""VER-10: a signal at any moment, or a spent budget, leaves whole reports of what has ended, and ends calls under
way. usage: stop.py ASSAY HOSTILE"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ASSAY, HOSTILE = sys.argv[1:]
SHORT = ["--level", "smoke", "--only", "format.*", "--only", "law.draw/*", "--only", "engine.greedy/*"]
HANGS = ["--level", "smoke", "--timeout", "600", "--only", "format.draw/V2*", "--iut", f"exec:'{HOSTILE}' hang"]
MOMENTS, GUARD = 10, 120  # how often it is stopped; seconds after which it has failed to stop
wrong = []


def expect(name, held, what):
    if not held:
        wrong.append(f"{name}: {what}")


def events(log):
    with open(log, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def begun(run, log, event):
    """Waits until the log has a line of the event, or the run has ended."""
    while run.poll() is None and not (os.path.exists(log) and any(e["event"] == event for e in events(log))):
        time.sleep(0.01)


def check(name, code, folder):
    """The reports agree with one another and with the exit code; returns the JSON report."""
    with open(f"{folder}/report.json", encoding="utf-8") as f:
        report = json.load(f)
    counted = dict.fromkeys(report["tally"], 0)
    for case in report["cases"]:
        counted[case["state"]] += 1
    failed = sum(counted[state] for state in ("FAIL", "CRASH", "TIMEOUT", "ERROR"))
    expect(name, counted == report["tally"], f"tally {report['tally']} of {counted}")
    expect(name, report["reported"] == report["planned"] == len(report["cases"]), "a case is missing")
    expect(name, report["exit_code"] == code, f"exit code {code}, {report['exit_code']} reported")
    expect(name, failed == 0 and report["findings"] == [], f"{counted}, {report['findings']}")
    expect(name, code == (4 if counted["STOPPED"] else 0), f"exit code {code} with {counted}")
    root = xml.etree.ElementTree.parse(f"{folder}/report.junit").getroot()
    expect(name, len(root.findall(".//testcase")) == report["planned"], "JUnit has other cases")
    xml.etree.ElementTree.parse(f"{folder}/report.html")
    log = events(f"{folder}/log")
    expect(name, log[0]["event"] == "start" and log[-1]["event"] == "end", "the log is not closed")
    expect(name, sum(e["event"] == "case" for e in log) == report["planned"], "the log lacks a case")
    expect(name, log[-1]["tally"] == report["tally"], "the log has another tally")
    return report


def stopped(name, options, after, numbers, event="start"):
    """Starts a run, sends signals so many seconds after the event, and returns exit code and report."""
    with tempfile.TemporaryDirectory() as folder:
        files = [f"--{kind}={folder}/report.{kind}" for kind in ("json", "junit", "html")] + [f"--log={folder}/log"]
        run = subprocess.Popen([ASSAY, "run", *options, *files], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True)
        begun(run, f"{folder}/log", event)
        for number in numbers:
            time.sleep(after)
            run.send_signal(number)
        out = run.communicate(timeout=GUARD)[0]
        if run.returncode < 0:
            return run.returncode, {"cases": [], "stopped": None, "planned": None, "tally": {"STOPPED": 0}}
        report = check(name, run.returncode, folder)
        last = out.rstrip().split("\n")[-1]
        expect(name, last.startswith(report["verdict"]) and last.endswith(f"exit code {run.returncode}"), last)
        return run.returncode, report


random.seed(10)
reached = set()
for moment in range(MOMENTS):
    after = random.uniform(0, 1.5)
    code, report = stopped(f"SIGTERM after {after:.2f} s", SHORT, after, [signal.SIGTERM])
    reached.add(report["stopped"])
    expect(f"SIGTERM after {after:.2f} s", code >= 0, f"ended by signal {-code}")
expect("SIGTERM", "signal" in reached, "no run was stopped before its end")

for number in (signal.SIGTERM, signal.SIGINT):
    code, report = stopped("a call that hangs", HANGS, 0.1, [number], "begin")
    states = {case["state"] for case in report["cases"]}
    expect("a call that hangs", code == 4 and states == {"STOPPED"}, f"exit code {code}, {states}")
    expect("a call that hangs", report["stopped"] == "signal", report["stopped"])
code, report = stopped("Ctrl-C twice", HANGS, 0.3, [signal.SIGINT, signal.SIGINT], "begin")
expect("Ctrl-C twice", code == -signal.SIGINT, f"exit code {code}")
code, report = stopped("--budget", [*HANGS, "--budget", "0.5"], 0, [])
expect("--budget", code == 4 and report["stopped"] == "budget", f"exit code {code}, {report['stopped']}")
code, report = stopped("a start that hangs", [*HANGS[:-1], "exec:sleep 600", "--budget", "0.5"], 0, [])
expect("a start that hangs", code == 4 and report["tally"]["STOPPED"] == report["planned"], f"exit code {code}")

print("\n".join(wrong) or f"{MOMENTS} moments, a call and a start that hang, a budget: whole reports")
sys.exit(1 if wrong else 0)
