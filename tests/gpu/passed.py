#!/usr/bin/env python3
"""The lock of the kernels' tests: which of them passed in a deep run, and on what.

    passed.py FACTS digest              prints the digest of what these tests are built from
    passed.py FACTS run -- COMMAND...   runs a test, unless it passed at this level: then exits with 77
    passed.py FACTS write DIGEST LEVEL...
        writes that all passed at these machine levels; refuses if DIGEST, taken before the run, is not today's

FACTS: --source ROOT --level PROGRAM --compiler PROGRAM... --flags TEXT. The lock, ROOT/tests/gpu/passed.lock,
has lines `LEVEL DIGEST DATE`. `run` looks at it only if the environment has ASSAY_PASSED_LOCK=obey, as in
`ci/test --ci`; PROGRAM of --level prints the machine level in force."""
import argparse
import datetime
import hashlib
import os
import subprocess
import sys
from pathlib import Path

FOLDERS = ("gpu", "ref", "conformance", "vectors", "tests/gpu", "tests/ref", "ci/gpu")
SINGLE = ("CMakeLists.txt", "CMakePresets.json", "tests/CMakeLists.txt", "tests/random.h", "tests/scale.h")
LEVELS = ("baseline", "v3", "v4")
NOT_BUILT_FROM = (".md", ".lock", ".pyc")
SKIPPED = 77
HEAD = ("# What the kernels' tests passed on: LEVEL DIGEST DATE, a line a machine level. Only `ci/test --deep`\n"
        "# writes this file; tests/README.md explains it.\n")


def files(root):
    """All that these tests are built from, in order of their paths."""
    found = [root / name for name in SINGLE]
    for folder in FOLDERS:
        at = root / folder
        found += [at] if at.is_file() else [f for f in at.rglob("*") if f.is_file()]
    return sorted((f for f in found if f.suffix not in NOT_BUILT_FROM), key=lambda f: f.relative_to(root).as_posix())


def version(compiler):
    """Its version, whatever name it was called by."""
    line = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    return line.partition(" ")[2]


def digest(root, compilers, flags):
    whole = hashlib.sha256()
    for text in (*map(version, compilers), " ".join(flags.split())):
        whole.update(text.encode() + b"\0")
    for file in files(root):
        whole.update(file.relative_to(root).as_posix().encode() + b"\0")
        whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def read(lock):
    """The digest and date of each level."""
    if not lock.exists():
        return {}
    lines = [line.split() for line in lock.read_text().splitlines() if line and line[0] != "#"]
    wrong = [line for line in lines if len(line) != 3 or line[0] not in LEVELS]
    if wrong or len({line[0] for line in lines}) < len(lines):
        sys.exit(f"{lock}: not lines `LEVEL DIGEST DATE`, one a level")
    return {level: (found, date) for level, found, date in lines}


def write(lock, levels, found):
    told = read(lock)
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    told.update({level: (found, date) for level in levels})
    lock.write_text(HEAD + "".join(f"{x} {' '.join(told[x])}\n" for x in LEVELS if x in told))


def run(lock, level, found, command):
    passed, date = read(lock).get(level, ("", ""))
    if passed == found:
        print(f"skipped: passed at level {level} on {date}, digest {found[:16]}")
        return SKIPPED
    print(f"a deep run is due: {lock.name} has no line for level {level} and digest {found[:16]}", flush=True)
    return subprocess.run(command).returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--level", required=True)
    parser.add_argument("--compiler", action="append", required=True)
    parser.add_argument("--flags", default="")
    parser.add_argument("action", choices=("digest", "run", "write"))
    parser.add_argument("words", nargs="*")
    a = parser.parse_args()
    lock = a.source / "tests/gpu/passed.lock"
    if a.action == "run" and os.environ.get("ASSAY_PASSED_LOCK") != "obey":
        return subprocess.run(a.words).returncode
    found = digest(a.source, a.compiler, a.flags)
    if a.action == "digest":
        print(found)
    elif a.action == "run":
        level = subprocess.run([a.level], capture_output=True, text=True, check=True).stdout.strip()
        return run(lock, level, found, a.words)
    elif len(a.words) < 2 or set(a.words[1:]) - set(LEVELS):
        sys.exit(f"passed.py: write takes a digest and levels, of {', '.join(LEVELS)}")
    elif a.words[0] != found:
        sys.exit("passed.py: the sources changed during the run: nothing is written; run it again")
    else:
        write(lock, a.words[1:], found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
