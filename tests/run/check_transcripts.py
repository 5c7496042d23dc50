#!/usr/bin/env python3
"""What README.md and docs/add-your-implementation.md show of a run is what a run prints: each line of a
transcript, but for seconds and what `...` leaves out.

usage: check_transcripts.py ASSAY SOURCE CC PYTHON suite|engine

`engine` has the run of an engine in Python, which is slow; `suite` the others.
"""
import re
import shlex
import subprocess
import sys
import tempfile

ASSAY, SOURCE, CC, PYTHON, PART = sys.argv[1:]
ADAPTERS = f"{SOURCE}/conformance/adapters"
TABLE = "check                state"


def plugin(folder, correction=None):
    """my_verifier.so: the example as it is, or with that line where it draws a correction."""
    with open(f"{ADAPTERS}/c/example_plugin.c") as f:
        text = f.read()
    if correction:
        text, found = re.subn(r"out\[i\] = draw_residual\(.*\);", correction, text)
        if found != 1:
            sys.exit(f"example_plugin.c draws corrections in {found} lines, not 1")
    with open(f"{folder}/my_verifier.c", "w") as f:
        f.write(text)
    subprocess.run([CC, "-std=c11", "-O2", "-fPIC", "-shared", "-I", f"{SOURCE}/conformance", "-o",
                    "my_verifier.so", "my_verifier.c"], cwd=folder, check=True)


def run(folder, *options):
    done = subprocess.run([ASSAY, "run", *options], cwd=folder, capture_output=True, text=True, timeout=1200)
    return done.stdout.replace(ASSAY, "build/assay")


def lines_of(text):
    """Lines as they are compared: no seconds, one blank for many."""
    for line in text.splitlines():
        row = re.match(r"(\S+ +[A-Z_]+ +\d+(?: of \d+)? +\d+(?: [kM])?) +\d+\.\d\d\b(.*)", line)
        line = row.group(1) + row.group(2) if row else re.sub(r"\b\d+\.\d s,", "", line)
        yield " ".join(line.split())


def shown(page, count):
    """The transcripts of a page, which should be so many."""
    with open(f"{SOURCE}/{page}") as f:
        blocks = re.split(r"^```.*\n", f.read(), flags=re.M)[1::2]
    blocks = [b for b in blocks if TABLE in b or "\nNOT CONFORMANT" in b]
    if len(blocks) != count:
        sys.exit(f"{page} has {len(blocks)} transcripts, not {count}")
    return blocks


def compare(page, block, printed):
    there, wrong = list(lines_of(printed)), 0
    for line in lines_of(block):
        pieces = [re.escape(p.strip()) for p in line.split("...")]
        if not any(re.fullmatch(".*".join(pieces), other) for other in there):
            print(f"{page} shows what is not printed: {line}")
            wrong += 1
    if wrong:
        print(printed)
    return wrong


GUIDE = "docs/add-your-implementation.md"


def of_suite(folder, whole, broken):
    """The reference, and the guide's plugin as it is and as the guide breaks it: lines that are wrong."""
    [block] = shown("README.md", 1)
    wrong = compare("README.md", block, run(folder, "--iut", "ref", "--level", "smoke"))
    mine = ("--iut", "plugin:my_verifier.so", "--level", "smoke")
    plugin(folder)
    wrong += compare(GUIDE, whole, run(folder, *mine))
    with open(f"{SOURCE}/{GUIDE}") as f:
        [line] = re.findall(r"^    (out\[i\] = draw_from\(p, .*;)$", f.read(), re.M)
    plugin(folder, line)
    return wrong + compare(GUIDE, broken, run(folder, *mine))


def of_engine(folder, block):
    return compare(GUIDE, block, run(folder, "--only", "engine.*", "--level", "smoke", "--iut",
                                     f"exec:{PYTHON} {shlex.quote(ADAPTERS)}/python/example_generate.py"))


def main():
    whole, broken, engine = shown(GUIDE, 3)
    with tempfile.TemporaryDirectory() as folder:
        wrong = of_engine(folder, engine) if PART == "engine" else of_suite(folder, whole, broken)
    print(f"transcripts of the {PART}: {wrong} lines wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
