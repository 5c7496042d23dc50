#!/usr/bin/env python3
"""`mpirun -n D assay decode --method lookahead` from outside.

    ranks.py quick MPIRUN ASSAY          two ranks have the result of one process
    ranks.py whole MPIRUN ASSAY ACTOR    so have one to four, under several presets; a rank that is killed, stopped,
                                         leaves or alters its pool ends the run within 10 s, and the run fails
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 10  # seconds from what a rank does to the end of all
PROMPT = ["--prompt", "And the LORD spake unto Moses, and unto Aaron, saying unto them, "]
QUICK = [["--max-new", "12", "--window", "2", "--ngram", "3", "--pool", "9", "--switches", "pool_from_prompt=yes"]]
WHOLE = [
    ["--max-new", "24", "--window", "7", "--ngram", "5", "--pool", "7", "--switches", "pool_from_prompt=yes"],
    ["--max-new", "24", "--preset", "lade", "--temperature", "0.8", "--seed", "3"],
    ["--max-new", "24", "--preset", "llamacpp", "--temperature", "0.8", "--window", "3", "--ngram", "3"],
    ["--max-new", "24", "--preset", "trtllm"],
]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")


def ranks(mpirun, count, *command):
    return [mpirun, "--oversubscribe", "-n", str(count), *command]


def fail(text):
    sys.exit(f"FAIL: {text}")


def run(command):
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        fail(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done


def decoded(command, folder):
    """What it prints, and its --json without the time that it took: tokens, steps, windows, pools."""
    file = Path(folder) / "result.json"
    done = run([*command, "--json", str(file)])
    result = json.loads(file.read_text())
    del result["seconds"]
    return done.stdout, result, done.stderr


def same(mpirun, assay, options, counts):
    command = [assay, "decode", "--method", "lookahead", *PROMPT, *options]
    with tempfile.TemporaryDirectory() as folder:
        text, result, _ = decoded([*command, "--threads", "1"], folder)
        if result["accepted"] == 0 and len(options) > 2:
            fail(f"{options}: nothing is accepted; choose another prompt")
        for count in counts:
            shared, other, said = decoded(ranks(mpirun, count, *command), folder)
            if (shared, other) != (text, result):
                fail(f"{options}: {count} ranks have another result than one process")
            check_figures(said, count, len(result["steps"]))
    print(f"{counts} ranks: {result['forwards']} steps, {result['accepted']} drafts accepted: {' '.join(options)}")


def check_figures(said, count, steps):
    """Every rank has rows, and no more than all; two or more have sent two digests and a walk a step at least."""
    rows = re.search(r"ranks: (\d+); of (\d+) rows they evaluated ([\d, ]+);", said)
    sent = re.search(r"exchanged: rank 0 sent (\d+) bytes in (\d+) steps", said)
    if not rows or not sent or "a model of strong scaling: W " not in said:
        fail(f"{count} ranks: no figures:\n{said}")
    each = [int(x) for x in rows[3].split(",")]
    if int(rows[1]) != count or len(each) != count or min(each) < steps or sum(each) < int(rows[2]):
        fail(f"{count} ranks: {rows[0]}")
    check_model(said, count)
    if int(sent[2]) != steps or int(sent[1]) < (count - 1) * steps * 28 or (count == 1 and int(sent[1]) != 0):
        fail(f"{count} ranks: {sent[0]}")


def largest_share(columns, length, candidates, count):
    """Rows of the largest share of a steady step (LAH-31): its columns with the spine up to the last of them, the root
    at least, and its candidates of `length` tokens."""
    def share(n, d):
        size = -(-n // count)
        return range(n)[d * size : (d + 1) * size]
    return max(max([1, *(i + 1 for i in share(columns, d))]) + (length - 1) * len(share(columns, d))
               + length * len(share(candidates, d)) for d in range(count))


def check_model(said, count):
    model = re.search(r"W (\d+), N (\d+) and (\d+) candidates are (\d+) rows; (.*)", said)
    W, N, candidates, rows = (int(x) for x in model.groups()[:4])
    told = {int(d): int(r) for d, r in re.findall(r"(\d+) ranks (\d+), 1/", model[5])}
    due = {d: largest_share(W, N - 1, candidates, d) for d in (1, 2, 4, 8, 16)}
    if {1: rows, **told} != due:
        fail(f"{count} ranks: {model[0]}, but LAH-31 has {due}")


def refused(mpirun, assay):
    command = ranks(mpirun, 2, assay, "decode", "--method", "jacobi", "--prompt", "a")
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    if done.returncode == 0 or "lookahead alone is shared" not in done.stderr:
        fail(f"jacobi under mpirun: exit code {done.returncode}\n{done.stderr}")


def until_the_end(command, sign, act):
    """Runs it; calls act(process) at the line that begins with the sign. Its exit code, the seconds from there to its
    end, and the standard error behind it."""
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as p:
        for line in p.stderr:
            if sign and line.startswith(sign):
                break
        start = time.monotonic()
        act(p)
        said = p.stderr.read()
        code = p.wait(timeout=60)
    return code, time.monotonic() - start, said


def acts(mpirun, actor, count, rank, step, act, says):
    command = ranks(mpirun, count, actor, str(rank), str(step), act)
    code, took, said = until_the_end(command, "acts" if act != "none" else "", lambda _: None)
    told = re.search(says, said)
    if (code != 0) != (act != "none") or took > LIMIT or not told:
        fail(f"{' '.join(command)}: exit code {code} after {took:.1f} s\n{said}")
    print(f"{count} ranks, {act} in rank {rank} after step {step}: exit code {code}, {took:.1f} s"
          + (f": {told[0]}" if says else ""))


def process_of(mpirun, rank):
    """The process that mpirun has started as this rank."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            variables = (folder / "environ").read_bytes().split(b"\0") if parent == mpirun else []
            if f"OMPI_COMM_WORLD_RANK={rank}".encode() in variables:
                return int(folder.name)
        except OSError:
            pass
    fail(f"mpirun has no rank {rank}")


def killed(mpirun, assay, rank, step, number):
    """Sends a signal to a rank of the program when the first has told of that step."""
    command = ranks(mpirun, 3, assay, "decode", "--method", "lookahead", *PROMPT, "--trace", "--max-new", "8",
                    "--window", "60", "--ngram", "8", "--pool", "0")
    code, took, rest = until_the_end(command, f"step {step} ", lambda p: os.kill(process_of(p.pid, rank), number))
    if code == 0 or took > LIMIT:
        fail(f"rank {rank} gets {number.name} after step {step}: exit code {code} after {took:.1f} s\n{rest}")
    print(f"assay, 3 ranks, {number.name} to rank {rank} after step {step}: exit code {code}, {took:.1f} s")


def main():
    mode, mpirun, assay = sys.argv[1:4]
    counts = [2] if mode == "quick" else [1, 2, 3, 4]
    for options in QUICK if mode == "quick" else WHOLE:
        same(mpirun, assay, options, counts)
    if mode == "quick":
        return
    actor = sys.argv[4]
    refused(mpirun, assay)
    acts(mpirun, actor, 3, 0, 0, "none", "")
    for step in (0, 7, -1):
        acts(mpirun, actor, 3, 1, step, "kill", r"rank 1 .* exited on signal 9")
    for step, noticed in ((0, "1"), (7, "8"), (-1, r"\d+")):
        acts(mpirun, actor, 3, 1, step, "alter", f"step {noticed}: rank 1 differs from rank 0 in its history")
    acts(mpirun, actor, 3, 1, 7, "stop", r"step 8: rank 1 has been silent for \d s")
    acts(mpirun, actor, 3, 1, 7, "leave", "rank 1")
    for step in (0, 3, 6):
        killed(mpirun, assay, 2, step, signal.SIGKILL)


if __name__ == "__main__":
    main()
