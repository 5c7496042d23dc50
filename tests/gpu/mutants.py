#!/usr/bin/env python3
"""Known faults in the kernels, each of which a test must notice.

    mutants.py --source ROOT --build FOLDER --cxx COMPILER [--only NAME] [--every N]
    mutants.py --source ROOT --texts

A fault is a text of one file of gpu/ and what stands there instead, or flags of the compiler
(mutants.txt). The file is changed in a copy, compiled as the emulator's library compiles it, and
linked in front of the unchanged rest with the test that must fail. A fault of the plugin becomes a
plugin, and `assay run` must call it not conformant. A fault that nobody notices, whose text is no longer
there, or that keeps the test from ending though it does not say so, makes this fail; so does a file
that is built without a fault, and whose test fails. `--texts` only asks whether each text still stands."""
import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SECONDS, TIMES = 60, 8  # a test may take so long, and so many times what it takes without a fault
CONTROL_SECONDS = 600
MARKS = ("always", "hangs")
PLUGIN = tuple(f"conformance/subjects/gpu/plugin{part}.c" for part in ("", "_engine", "_tree"))  # its sources
FAILS, PASSES, HANGS = "noticed", "NOT NOTICED: its test passes", "its test does not end"


def read_faults(path):
    """Blocks of `name: test words`, `- old lines`, `+ new lines`, and `# comments`."""
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
            test, *words = rest.split()
            flags = [w for w in words if w.startswith("-")]
            file, *with_ = [w for w in words if w not in MARKS and w not in flags]
            faults.append({"name": name, "test": test, "file": file, "with": with_, "flags": flags, "-": [], "+": [],
                           **{mark: mark in words for mark in MARKS}})
    return faults


def chosen(faults, every):
    """Those that are always planted, and one of so many others."""
    others = [f["name"] for f in faults if not f["always"]][::every]
    return [f for f in faults if f["always"] or f["name"] in others]


def changed(fault, root):
    """The file's text with the fault in it, or None when its text is not there exactly once."""
    text = (root / fault["file"]).read_text()
    old, new = "\n".join(fault["-"]), "\n".join(fault["+"])
    if not old:
        return text if fault["flags"] else None
    return text.replace(old, new) if text.count(old) == 1 else None


def is_plugin(fault):
    return fault["test"].startswith("run=")


def build(fault, text, folder, a):
    """Compiles the changed file, or what includes it, and links the test; the command that runs it."""
    copy = folder / fault["file"]
    copy.parent.mkdir(parents=True)
    copy.write_text(text)
    objects = []
    for source in PLUGIN if is_plugin(fault) else fault["with"] or [fault["file"]]:
        at = folder / source if (folder / source).exists() else a.source / source
        objects.append(str(folder / (Path(source).name + ".o")))
        language = ["-x", "c", "-std=c11"] if source.endswith(".c") else ["-x", "c++", "-std=c++17"]
        run = [a.cxx, *language, "-O1", "-fPIC", "-ffp-contract=off", *fault["flags"], f"-I{folder}", f"-I{a.source}"]
        subprocess.run([*run, "-c", str(at), "-o", objects[-1]], check=True)
    program, part = folder / "test", fault["test"]
    if is_plugin(fault):
        link = ["-shared", *objects]
        cases, *options = part[len("run="):].split(",")
        command = [a.assay, "run", "--iut", f"plugin:{program}", "--iut-options", " ".join(options), "--level", "smoke",
                   "--samples", "2000", "--timeout", "600", "--jobs", "1", "--quiet", "--only", cases]
    else:
        part = part.split("/")[0]
        link = [str(o) for o in (a.build / f"tests/gpu/CMakeFiles/gpu_{part}_test.dir").rglob("*.o")] + objects
        command = [program, *a.argument]
    libraries = ["-Wl,--start-group", *a.library, "-Wl,--end-group"]
    subprocess.run([a.cxx, "-o", str(program), *link, *libraries, "-fopenmp", *a.link], check=True)
    return command


def environment(fault):
    """One process, which can be ended, the whole sample, and of the test the case that the fault names."""
    case = {} if is_plugin(fault) else {"CK_RUN_CASE": case for case in fault["test"].split("/")[1:]}
    return {**os.environ, "CK_FORK": "no", "ASSAY_TEST_SCALE": "1", **case}


def outcome(fault, a, limit):
    """What comes of it: FAILS, PASSES, HANGS, or another text that says what went wrong."""
    text = changed(fault, a.source)
    with tempfile.TemporaryDirectory() as folder:
        try:
            command = build(fault, text, Path(folder), a)
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit,
                                  env=environment(fault))
        except subprocess.CalledProcessError:
            return "it does not compile"
        except subprocess.TimeoutExpired:
            return HANGS
    if is_plugin(fault) and done.returncode not in (0, 1):  # conformant, not conformant
        return f"exit code {done.returncode}: {(done.stdout + done.stderr)[-300:]}"
    return FAILS if done.returncode else PASSES


def judge(fault, a, limit):
    start = time.monotonic()
    return outcome(fault, a, limit), time.monotonic() - start


def controls(faults):
    """A fault that changes nothing, once for each test and machine: of the flags it keeps those that
    choose the machine."""
    machine = {f["name"]: [flag for flag in f["flags"] if flag.startswith("-m")] for f in faults}
    first = {(f["test"], *machine[f["name"]]): f for f in reversed(faults)}
    return [{**f, "name": "NONE " + f["file"], "flags": machine[f["name"]] or ["-O1"], "-": [], "+": [],
             "hangs": False} for f in first.values()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--texts", action="store_true", help="ask only whether each fault's text stands")
    parser.add_argument("--build", type=Path)
    parser.add_argument("--cxx")
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1, help="one of so many, beside those marked `always`")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--library", nargs="+", default=[], help="archives that tests and plugins need")
    parser.add_argument("--assay", help="the program that judges plugins")
    parser.add_argument("--link", default="", type=str.split, help="further words for the linker")
    parser.add_argument("--argument", nargs="*", default=[], help="of the tests")
    a = parser.parse_args()
    if not a.texts and not (a.build and a.cxx):
        parser.error("--build and --cxx, or --texts")
    start = time.monotonic()
    listed = read_faults(a.source / "tests/gpu/mutants.txt")
    gone = [f for f in listed if changed(f, a.source) is None]
    for f in gone:
        print(f"{f['name']}: its text does not stand in {f['file']} exactly once")
    if a.texts or gone:
        print(f"the texts of {len(listed) - len(gone)} faults stand, of {len(gone)} not")
        return 1 if gone or not listed else 0
    faults = [f for f in chosen(listed, a.every) if a.only in f["name"]]
    none = controls(faults)
    limit, alive, hung = {}, 0, 0
    with ThreadPoolExecutor(a.jobs) as pool:
        for control, (what, seconds) in zip(none, pool.map(lambda f: judge(f, a, CONTROL_SECONDS), none)):
            if what != PASSES:
                print(f"{control['name']}, without a fault, shows nothing: {control['test']}: {what}")
                return 1
            limit[control["test"]] = SECONDS + TIMES * seconds
        for fault, (what, seconds) in zip(faults, pool.map(lambda f: judge(f, a, limit[f["test"]]), faults)):
            alive += what != FAILS and not (what == HANGS and fault["hangs"])
            hung += what == HANGS
            print(f"{fault['name']:34} {fault['test']:10} {what}  {seconds:.1f} s", flush=True)
    print(f"{len(faults) - alive} faults noticed, {alive} not; the test of {hung} did not end; "
          f"{(time.monotonic() - start) / 60:.1f} min")
    return 1 if alive or not faults else 0


if __name__ == "__main__":
    sys.exit(main())
