#!/usr/bin/env python3
"""What peers.py does beside PyTorch: its file is whole after each result, ours stand beside, and it keeps to
its time. `peers_test.py FOLDER`, that of peers.py. A stand-in takes the place of PyTorch."""
import json
import pathlib
import sys
import tempfile
import time
import types

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import peers  # pylint: disable=wrong-import-position


class Event:
    """A clock of which `now` is moved by the work."""
    now = 0.0

    def __init__(self, enable_timing):
        assert enable_timing
        self.at = None

    def record(self):
        self.at = Event.now

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return end.at - self.at


TORCH = types.SimpleNamespace(cuda=types.SimpleNamespace(Event=Event))


def work_of(milliseconds):
    calls = []

    def work():
        Event.now += milliseconds[len(calls) % len(milliseconds)]
        calls.append(1)
    return work, calls


def check_times():
    work, calls = work_of([1.0, 2.0, 6.0])
    assert peers.timed(TORCH, peers.Clock(None), work) == (2000.0, 1000.0, 6000.0)
    assert len(calls) == peers.REPETITIONS + 8, f"{len(calls)} calls"  # 1 + 2 + 6 + ... = 21 ms before
    clock = peers.Clock(100.0)  # 10 seconds for each measurement
    work, calls = work_of([1e3])
    peers.timed(TORCH, clock, work)
    assert 1 + 9 <= len(calls) <= 1 + 10 and (clock.timed, clock.shortened) == (1, 1), f"{len(calls)} calls"
    work, calls = work_of([1e6])
    peers.timed(TORCH, clock, work)
    assert len(calls) == 1 + peers.FEW
    clock.begun -= 96
    try:
        peers.timed(TORCH, clock, work)
    except peers.OutOfTime:
        return
    raise AssertionError("there was no time left")


def check_alarm():
    began = time.monotonic()
    try:
        with peers.Clock(0.2).alarm():
            try:
                time.sleep(30)
            except Exception:  # pylint: disable=broad-exception-caught
                pass
    except peers.OutOfTime:
        assert time.monotonic() - began < 10
    else:
        raise AssertionError("the alarm did not ring")
    with peers.Clock(0.1).alarm():
        pass
    time.sleep(0.2)  # it is off


def check_report(folder):
    file = pathlib.Path(folder) / "peers_steps.json"
    report = peers.Report(file, "0")
    assert json.loads(file.read_text())["results"] == []
    for n in range(3):
        report.add({"n": n})
        assert json.loads(file.read_text()) == {"bench": "PyTorch", "version": "0",
                                                "results": [{"n": i} for i in range(n + 1)]}
    assert report.ours(rows=1) is None
    file.with_name("half.json").write_text("{")
    file.with_name("list.json").write_text("[]")
    file.with_name("other.json").write_text(json.dumps({"bench": "other", "results": [{"what": "step", "rows": 1}]}))
    assert peers.Report(file, "0").ours(rows=1) is None
    file.with_name("bench-gpu-steps.json").write_text(json.dumps({"bench": "Kernels and steps", "results": [
        {"what": "read", "unit": "GB/s"}, {"what": "step", "rows": 1, "products": "cuBLAS, free", "us": 5.0},
        {"what": "step", "rows": 1, "storage": "F32", "model": "1.1B", "us": 8.0},
        {"what": "step", "rows": 1, "storage": "BF16", "model": "1.1B", "us": None}]}))
    report = peers.Report(file, "0")
    step = {"model": "1.1B", "rows": 1, "weights": "float32", "graph_us": 10.0}
    assert peers.beside(step, peers.our_step(report, step)) == "8.00 | 1.250" and step["ours_us"] == 8.0
    step["weights"] = "bfloat16"
    assert peers.beside(step, peers.our_step(report, step)) == "- | -"
    assert peers.Report(None, "0").ours(rows=1) is None


check_times()
check_alarm()
with tempfile.TemporaryDirectory() as at:
    check_report(at)
print("peers.py: times, report and limit are as they should be")
