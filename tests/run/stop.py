#!/usr/bin/env python3
"""VER-10: a signal at any moment, or a spent budget, leaves whole reports of what has ended, and ends calls under
way; no process of the implementation outlives the program. usage: stop.py ASSAY HOSTILE PLUGIN"""
import concurrent.futures
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ASSAY, HOSTILE, PLUGIN = sys.argv[1:]
SHORT = ["--level", "smoke", "--only", "format.*", "--only", "law.draw/*", "--only", "engine.greedy/*"]
HANG = ["--level", "smoke", "--timeout", "600", "--only"]
HANGS = [*HANG, "format.draw/V2*", "--iut", f"exec:'{HOSTILE}' hang"]
HANGS_WITH_CHILD = [*HANGS[:-1], f"exec:sleep 600 & '{HOSTILE}' hang"]
WORKER_HANGS = [*HANG, "residual.values/*", "--iut", "mutant:LIAR_HANG"]
START_HANGS = [*HANGS[:-1], "exec:sleep 600"]
FAILS = ["--level", "smoke", "--jobs", "1", "--iut", "mutant:ACCEPT_LE", "--only", "replay.*", "--only", "law.*"]
MOMENTS, GUARD = 10, 120  # how often it is stopped; seconds after which it has failed to stop
wrong = []


def expect(name, held, what):
    if not held:
        wrong.append(f"{name}: {what}")


def events(log):
    with open(log, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def begun(run, log, is_due):
    """Waits until the log has a line that is due, or the run has ended."""
    while run.poll() is None and not (os.path.exists(log) and any(map(is_due, events(log)))):
        time.sleep(0.01)


def starts(event):
    return event["event"] == "start"


def begins(event):
    return event["event"] == "begin"


def fails(event):
    return event.get("state") == "FAIL"


def check(name, code, folder, failures):
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
    expect(name, failed == counted["FAIL"] and (failures or not failed), f"{counted}")
    expect(name, failures or not report["findings"], report["findings"])
    expect(name, code == (1 if failed else 4 if counted["STOPPED"] else 0), f"exit code {code} with {counted}")
    root = xml.etree.ElementTree.parse(f"{folder}/report.junit").getroot()
    expect(name, len(root.findall(".//testcase")) == report["planned"], "JUnit has other cases")
    expect(name, len(root.findall(".//testcase/failure")) >= failed, "JUnit has fewer failures")
    expect(name, len(root.findall(".//testcase/skipped")) >= counted["STOPPED"], "JUnit skips fewer")
    xml.etree.ElementTree.parse(f"{folder}/report.html")
    log = events(f"{folder}/log")
    expect(name, log[0]["event"] == "start" and log[-1]["event"] == "end", "the log is not closed")
    expect(name, sum(e["event"] == "case" for e in log) == report["planned"], "the log lacks a case")
    expect(name, log[-1]["tally"] == report["tally"], "the log has another tally")
    return report


def start(options, folder, before=""):
    """Starts a run, by a shell after the command `before`."""
    files = [f"--{kind}={folder}/report.{kind}" for kind in ("json", "junit", "html")] + [f"--log={folder}/log"]
    command = ["/bin/sh", "-c", before + 'exec "$@"', "sh", ASSAY, "run", *options, *files]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def stopped(name, options, after, numbers, is_due=starts, before="", failures=False):
    """Starts a run, sends signals so many seconds after the event, and returns exit code, report and last line."""
    with tempfile.TemporaryDirectory() as folder:
        run = start(options, folder, before)
        begun(run, f"{folder}/log", is_due)
        for number in numbers:
            time.sleep(after)
            run.send_signal(number)
        out = run.communicate(timeout=GUARD)[0]
        if run.returncode < 0:
            wrong.append(f"{name}: ended by signal {-run.returncode}")
            sys.exit("\n".join(wrong))
        report = check(name, run.returncode, folder, failures)
        last = out.rstrip().split("\n")[-1]
        expect(name, last.startswith(report["verdict"]) and last.endswith(f"exit code {run.returncode}"), last)
        return run.returncode, report, last


def processes():
    """Of each process that lives: number, parent and group."""
    living = {}
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as f:
                state, parent, group = f.read().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if state not in "ZX":
            living[int(number)] = int(parent), int(group)
    return living


def implementation(run):
    """The processes that the program has started, with all of their groups."""
    living = processes()
    groups = {group for parent, group in living.values() if parent == run.pid}
    return {number for number, (_, group) in living.items() if group in groups}


def ended(name, options, least, numbers):
    """Signals end the program while its implementation hangs in `least` processes: none of them is left."""
    with tempfile.TemporaryDirectory() as folder:
        run = start(options, folder)
        while run.poll() is None and len(implementation(run)) < least:
            time.sleep(0.01)
        time.sleep(0.3)
        for number in numbers[:-1]:
            run.send_signal(number)
            time.sleep(0.3)
        hanging = implementation(run)
        run.send_signal(numbers[-1])
        run.communicate(timeout=GUARD)
        expect(name, run.returncode == -numbers[-1], f"exit code {run.returncode}")
        expect(name, len(hanging) >= least, f"{len(hanging)} processes were there")
        until = time.monotonic() + 5
        while hanging & processes().keys() and time.monotonic() < until:
            time.sleep(0.01)
        left = hanging & processes().keys()
        expect(name, not left, f"{len(left)} of {len(hanging)} processes are left")
        for number in left:
            os.kill(number, signal.SIGKILL)


def leaves_no_file():
    """Killed while a built-in implementation writes its traces."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.Popen([ASSAY, "run", "--level", "smoke", "--only", "trace.*"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder})
        while run.poll() is None and not implementation(run):
            time.sleep(0.01)
        run.kill()
        run.wait(timeout=GUARD)
        expect("traces, SIGKILL", run.returncode == -signal.SIGKILL, f"exit code {run.returncode}")
        expect("traces, SIGKILL", not os.listdir(folder), os.listdir(folder))


def at_a_moment(after):
    """At any moment: before the first case, within one, after the last. Where that was too late, once more, earlier."""
    for _ in range(8):
        if stopped(f"SIGTERM after {after:.2f} s", SHORT, after, [signal.SIGTERM])[1]["stopped"] == "signal":
            return
        after /= 2
    wrong.append(f"SIGTERM after {after:.2f} s: the run went on to its end")


def length():
    """Seconds that the same run takes, left alone."""
    begin = time.monotonic()
    code, report, _ = stopped("left alone", SHORT, 0, [])
    expect("left alone", code == 0 and report["stopped"] is None, f"exit code {code}, {report['stopped']}")
    return time.monotonic() - begin


def within_a_call(numbers):
    code, report, _ = stopped("a call that hangs", HANGS, 0, numbers, begins)
    states = {case["state"] for case in report["cases"]}
    expect("a call that hangs", code == 4 and states == {"STOPPED"}, f"exit code {code}, {states}")
    expect("a call that hangs", report["stopped"] == "signal", report["stopped"])


def by_budget():
    code, report, _ = stopped("--budget", [*HANGS, "--budget", "0.5"], 0, [])
    expect("--budget", code == 4 and report["stopped"] == "budget", f"exit code {code}, {report['stopped']}")
    code, report, _ = stopped("a start that hangs", [*START_HANGS, "--budget", "0.5"], 0, [])
    expect("a start that hangs", code == 4 and report["tally"]["STOPPED"] == report["planned"], f"exit code {code}")


def after_a_failure():
    """What failed before the stop decides."""
    name = "a failure, then SIGTERM"
    code, report, last = stopped(name, FAILS, 0, [signal.SIGTERM], fails, failures=True)
    tally = report["tally"]
    expect(name, code == 1 and report["stopped"] == "signal", f"exit code {code}")
    expect(name, tally["FAIL"] >= 1 and tally["STOPPED"] >= 1, tally)
    expect(name, f", stopped by a signal: {report['planned']} cases, " in last, last)
    expect(name, f" {tally['FAIL']} fail so far; " in last, last)


def within_a_case(answers, code_due, state_due):
    """So does what failed in the case that the stop interrupts; a call without an answer is no failure."""
    name = f"a stop after {answers} wrong answers"
    options = [*HANG, "edges.declared/draft-V", "--iut", f"plugin:{PLUGIN}", "--iut-options", str(answers)]
    code, report, _ = stopped(name, options, 0.3, [signal.SIGTERM], begins, failures=code_due == 1)
    states = [case["state"] for case in report["cases"]]
    expect(name, code == code_due and states == [state_due], f"exit code {code}, {states}")


def hung_up(after):
    """A process that the program ends with itself accuses nobody in the log that is left."""
    with tempfile.TemporaryDirectory() as folder:
        run = start(["--level", "smoke", "--jobs", "32", "--iut", "ref"], folder)
        begun(run, f"{folder}/log", starts)
        time.sleep(after)
        run.send_signal(signal.SIGHUP)
        run.communicate(timeout=GUARD)
        expect("SIGHUP early", run.returncode == -signal.SIGHUP, f"exit code {run.returncode}")
        states = {event.get("state") for event in events(f"{folder}/log")}
        expect("SIGHUP early", not states & {"FAIL", "CRASH", "TIMEOUT", "ERROR"}, states)


def ignored():
    """What the parent ignores stays ignored."""
    numbers = [signal.SIGINT, signal.SIGINT]
    code, report, _ = stopped("SIGINT is ignored", [*HANGS, "--budget", "1"], 0.2, numbers, begins, "trap '' INT; ")
    expect("SIGINT is ignored", code == 4 and report["stopped"] == "budget", f"exit code {code}, {report['stopped']}")


random.seed(10)
LENGTH = length()
CALLS = [(at_a_moment, random.uniform(0, LENGTH)) for _ in range(MOMENTS)] + [
    (within_a_call, [signal.SIGTERM]),
    (within_a_call, [signal.SIGINT]),
    (within_a_call, [signal.SIGTERM, signal.SIGINT]),  # two signals in one moment are one
    (by_budget,),
    (after_a_failure,),
    (within_a_case, 0, 4, "STOPPED"),
    (within_a_case, 1, 1, "FAIL"),
    (ignored,),
    *((hung_up, random.uniform(0, 0.25)) for _ in range(MOMENTS)),
    (ended, "Ctrl-C twice", HANGS, 1, [signal.SIGINT, signal.SIGINT]),
    (ended, "SIGINT, SIGTERM", HANGS_WITH_CHILD, 3, [signal.SIGINT, signal.SIGTERM]),
    (ended, "SIGTERM twice", WORKER_HANGS, 1, [signal.SIGTERM, signal.SIGTERM]),
    (ended, "twice at the start", START_HANGS, 1, [signal.SIGTERM, signal.SIGTERM]),
    (ended, "SIGHUP", HANGS_WITH_CHILD, 3, [signal.SIGHUP]),
    (ended, "SIGQUIT", HANGS, 1, [signal.SIGQUIT]),
    (ended, "SIGKILL", WORKER_HANGS, 1, [signal.SIGKILL]),
    (leaves_no_file,),
]
with concurrent.futures.ThreadPoolExecutor(4) as pool:  # most of them wait
    for task in [pool.submit(*call) for call in CALLS]:
        task.result()

print("\n".join(wrong) or f"{MOMENTS} moments, calls that hang, a failure, a budget: whole reports, no process left")
sys.exit(1 if wrong else 0)
