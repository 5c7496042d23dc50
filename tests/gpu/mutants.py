#!/usr/bin/env python3
"""Known faults in the kernels, each of which a test must notice.

    mutants.py --source ROOT --build FOLDER --cxx COMPILER [--only NAME] [--every N]

A fault is a text of one file of gpu/ and what stands there instead (mutants.txt). The file is changed
in a copy, compiled as the emulator's library compiles it, and linked in front of the unchanged rest
with the test that must fail. A fault that the test does not notice, or whose text is no longer
there, makes this fail; so does a file that is built so without a fault, and whose test fails."""
import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SECONDS = 300


def read_faults(path):
    """Blocks of `name: test file`, `- old lines`, `+ new lines`, and `# comments`."""
    faults = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if line[:2] in ("- ", "+ ", "-", "+"):
            if not faults:
                sys.exit(f"{path}:{number}: a text before the first name")
            faults[-1][line[0]].append(line[2:])
        else:
            name, rest = line.split(":", 1)
            test, file, *with_ = rest.split()
            faults.append({"name": name, "test": test, "file": file, "with": with_, "-": [], "+": []})
    return faults


def changed(fault, root):
    """The file's text with the fault in it, or None when its text is not there exactly once."""
    text = (root / fault["file"]).read_text()
    old, new = "\n".join(fault["-"]), "\n".join(fault["+"])
    return text.replace(old, new) if old and text.count(old) == 1 else None


def build(fault, text, folder, a):
    """Compiles the changed file, or what includes it, and links the test; the program's path."""
    copy = folder / fault["file"]
    copy.parent.mkdir(parents=True)
    copy.write_text(text)
    objects = []
    for source in fault["with"] or [fault["file"]]:
        at = folder / source if (folder / source).exists() else a.source / source
        objects.append(str(folder / (Path(source).name + ".o")))
        language = ["-x", "c", "-std=c11"] if source.endswith(".c") else ["-x", "c++", "-std=c++17"]
        run = [a.cxx, *language, "-O1", "-ffp-contract=off", f"-I{folder}", f"-I{a.source}"]
        subprocess.run([*run, "-c", str(at), "-o", objects[-1]], check=True)
    program, part = folder / "test", fault["test"]
    test = [str(o) for o in (a.build / f"tests/gpu/CMakeFiles/gpu_{part}_test.dir").rglob("*.o")]
    subprocess.run([a.cxx, "-o", str(program), *test, *objects, *a.library, "-fopenmp", *a.link], check=True)
    return program


def survives(fault, a):
    """A reason why the fault was not noticed, or None."""
    text = changed(fault, a.source)
    if text is None:
        return "its text does not stand in the file exactly once"
    with tempfile.TemporaryDirectory() as folder:
        program = build(fault, text, Path(folder), a)
        try:
            done = subprocess.run([program, *a.argument], capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return None
        return None if done.returncode else f"the test {fault['test']} passes"


def judge(fault, a):
    start = time.monotonic()
    return survives(fault, a), time.monotonic() - start


def controls(faults):
    """A fault that changes nothing, once for each test."""
    first = {f["test"]: f for f in reversed(faults)}
    return [{**f, "name": "NONE " + f["file"], "+": f["-"]} for f in first.values()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1, help="one of so many, the first included")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--library", nargs="+", required=True, help="archives of the emulator and what it needs")
    parser.add_argument("--link", default="", type=str.split, help="further words for the linker")
    parser.add_argument("--argument", nargs="*", default=[], help="of the tests")
    a = parser.parse_args()
    faults = [f for f in read_faults(a.source / "tests/gpu/mutants.txt") if a.only in f["name"]][::a.every]
    none = controls(faults)
    alive = 0
    with ThreadPoolExecutor(a.jobs) as pool:
        for control, (why, _) in zip(none, pool.map(lambda f: judge(f, a), none)):
            if why is None:
                print(f"{control['name']}: the test {control['test']} fails without a fault, so it shows nothing")
                return 1
        for fault, (why, seconds) in zip(faults, pool.map(lambda f: judge(f, a), faults)):
            alive += why is not None
            print(f"{fault['name']:34} {fault['test']:10} {why or 'noticed'}  {seconds:.1f} s", flush=True)
    print(f"{len(faults) - alive} faults noticed, {alive} not")
    return 1 if alive or not faults else 0


if __name__ == "__main__":
    sys.exit(main())
