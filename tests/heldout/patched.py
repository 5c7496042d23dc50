#!/usr/bin/env python3
"""Runs the suite against the held-out faults and correct variants of a list of patches, and says what it noticed.

    patched.py LIST ROOT BUILD [--level LEVEL ...] [--only GLOB ...] [--python PYTHON] [--jobs N]
    patched.py LIST ROOT BUILD --dry-run      applies and compiles every patch; never builds or starts assay

LIST is a folder with list.md and patches/, beside this file. ROOT is a checkout of the project, which stays as it
is. Files of LIST/base, if there are any, stand for those of ROOT that have moved on since the patches; what they do
not claim is not asked of them. BUILD is a folder for copies, builds, logs and result.json. A patch whose name begins
with `ok-` is a correct variant, any other one a fault. The levels are run in their order until one fails.
PYTHON runs the adapters and needs NumPy.

Exit code: 0 if at least 85 % of the faults were noticed and no variant was accused, 1 if not, 2 for wrong
usage, 3 if something could not be judged.
"""

import argparse
import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ENOUGH = 0.85
UNDECIDED = 4  # the exit code of a run that neither passed nor failed
PLUGIN = "conformance/adapters/c/example_plugin.c"
PYTHON = "conformance/adapters/python/"
# What each kind of patch is built on, and what must pass without a patch before a verdict means anything.
CONTROLS = [PLUGIN, *(f"{PYTHON}example_{name}.py" for name in ("generate", "batch", "model", "pool", "trees")), "ref/",
            "conformance/subjects/ours/"]
# Whole levels are the honest run. Options stand here only where a correct variant is slow, or where a fault is in what
# an option chooses.
OPTIONS = {
    "ok-engine-race": ["--timeout", "60"],  # one logarithm for each token that may be drawn
    "ok-recursive-exact-integers": ["--timeout", "60"],  # integers without a limit, in Python
    "ok-seeded-canonical-integers": ["--timeout", "60"],
    "seeded-test-index-by-node": ["--iut-options", "uniforms=seeded"],  # else uniforms are supplied
    "seeded-position-32-bits": ["--iut-options", "uniforms=seeded"],
    "seeded-request-seed-xor": ["--iut-options", "uniforms=seeded"],
    "onehot-index-counts-repeats": ["--iut-options", "uniforms=seeded"],
    "block-tests-by-position": ["--iut-options", "uniforms=seeded"],
    "ref-chain-correction-of-first-position": ["--iut-options", "uniforms=seeded"],
    "seed-by-place-of-the-root": ["--iut-options", "uniforms=seeded"],
    "seeded-bonus-by-the-correction-purpose": ["--iut-options", "uniforms=seeded"],
    "seed-promise-not-kept": ["--iut-options", "uniforms=seeded"],
    "request-seeds-of-32-bits": ["--iut-options", "uniforms=seeded"],
    "draft-length-remembers-the-last-request": ["--iut-options", "uniforms=seeded"],
    "onehot-counts-repeats": ["--iut-options", "uniforms=seeded"],
    "warm-answers-again": ["--iut-options", "warm=yes"],  # else no pool stays
    "ok-warm-at-greedy-alone": ["--iut-options", "warm=yes"],
}
# Variants that bring no traces: `ref` always does, the same library as a plugin does not.
NO_TRACES = {
    "ok-jacobi-drawn-guesses", "ok-lookahead-accepts-window", "ok-lookup-last-match",
    "ok-suffixes-newest-first", "ok-one-suffix", "ok-no-suffix-near-budget", "ok-no-drafts-near-end", "ok-larger-pool",
    "ok-no-refinement", "ok-inspires-accepted", "ok-pool-from-prompt", "ok-drafts-by-success", "ok-first-round-plain",
    "ok-window-constant", "ok-window-rotates",
}


class Trouble(Exception):
    """A case that cannot be judged: no patch, no build, no verdict."""


def of_reference(file):
    """Is it the reference, or what makes a subject of it? Else it is an adapter."""
    return file.startswith(("ref/", "conformance/subjects/ours/"))


def command(words, where, what):
    done = subprocess.run([str(word) for word in words], cwd=where, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise Trouble(f"{what}: {done.stdout.strip()[-800:]}")


def patched_file(patch):
    """The one file that a patch changes."""
    files = re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(encoding="utf-8"), re.MULTILINE)
    if len(files) != 1:
        raise Trouble(f"{patch.name} changes {len(files)} files; it must change one")
    return files[0]


def apply(patch, where):
    command(["patch", "-p1", "--silent", "--forward", "--batch", "--no-backup-if-mismatch", "--input", patch],
            where, "the patch does not apply")


def fresh_copy(args, to, *parts):
    """A copy of some files and folders of ROOT under `to`, which is new; files of LIST/base in place of its own."""
    shutil.rmtree(to, ignore_errors=True)
    for part in parts:
        source, target = args.root / part, to / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)
    if (args.list / "base").exists():
        shutil.copytree(args.list / "base", to, dirs_exist_ok=True)


# ---- Builds: what `assay run --iut` is given. ------------------------------------------------------

def build_plugin(where):
    library = where / "iut.so"
    command(["gcc", "-std=c11", "-O2", "-fPIC", "-shared", "-I", "conformance", "-o", library, PLUGIN], where,
            "the plugin does not compile")
    return f"plugin:{library}"


def build_python(where, file, python):
    source = where / file
    try:
        compile(source.read_text(encoding="utf-8"), str(source), "exec")
    except SyntaxError as error:
        raise Trouble(f"{file} is not Python: {error}") from error
    return "exec:" + shlex.join([python, str(source)])


class Tree:
    """A copy of the whole source tree and its build folder, for the suite and for patches of the reference."""

    def __init__(self, root, build, jobs):
        self.source, self.build, self.jobs, self.root = build / "source", build / "out", jobs, root
        shutil.rmtree(self.source, ignore_errors=True)
        shutil.rmtree(self.build, ignore_errors=True)
        skip = shutil.ignore_patterns(".git", ".venv", "build", "build-*", "__pycache__")
        shutil.copytree(root, self.source,
                        ignore=lambda at, names: {*skip(at, names), *(n for n in names if Path(at, n) == build)})
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        command(["cmake", "-S", self.source, "-B", self.build, *generator, "-DCMAKE_BUILD_TYPE=Release",
                 "-DASSAY_CUDA=OFF", "-DBUILD_TESTING=OFF"], build, "cmake fails")
        self.make()

    def make(self):
        command(["cmake", "--build", self.build, "--target", "assay", "-j", self.jobs], self.source,
                "the build fails")

    def restore(self, file):
        """A new time stamp, for the builder compares times alone."""
        shutil.copyfile(self.root / file, self.source / file)
        os.utime(self.source / file)


def judge(assay, iut, options, where, log):
    """The exit code of a run, and its first failing case."""
    words = [str(assay), "run", "--iut", iut, *options]
    done = subprocess.run(words, cwd=where, text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(shlex.join(words) + "\n" + done.stdout, encoding="utf-8")
    failed = re.search(r"^(?:FAIL|CRASH|TIMEOUT) (\S+)", done.stdout, re.MULTILINE)
    return done.returncode, failed.group(1) if failed else ""


def judge_levels(args, tree, name, iut, options):
    """The first level that fails, or the last one: exit code, first failing case, level."""
    for level in args.level:
        code, failed = judge(tree.build / "assay", iut, ["--level", level, *options], tree.source,
                             args.build / "log" / f"{name}.{level}.txt")
        if code not in (0, UNDECIDED):
            break
    return code, failed, level


# ---- One case. -------------------------------------------------------------------------------------

def run_case(args, tree, name, file, patch):
    """Exit code, first failing case and level of the suite for a patch, or for what it patches (patch None)."""
    options = OPTIONS.get(name, [])
    if of_reference(file):
        try:
            if patch:
                apply(patch, tree.source)
                os.utime(tree.source / file)
            tree.make()
            library = tree.build / "lib/assay/libassay_ref.so"
            return judge_levels(args, tree, name, f"plugin:{library}" if name in NO_TRACES else "ref", options)
        finally:
            if patch:
                tree.restore(file)
    where = args.build / "work" / name
    fresh_copy(args, where, "conformance/iut.h", "conformance/adapters")
    if patch:
        apply(patch, where)
    iut = build_plugin(where) if file == PLUGIN else build_python(where, file, args.python)
    return judge_levels(args, tree, name, iut, options)


def dry_case(args, name, file, patch):
    where = args.build / "work" / name
    fresh_copy(args, where, "conformance", "ref", "vectors/read")
    apply(patch, where)
    if file == PLUGIN:
        build_plugin(where)
    elif file.startswith(PYTHON):
        build_python(where, file, args.python)
    else:
        command(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-fsyntax-only", "-I", ".", file], where,
                "the reference does not compile")


def state_of(variant, code):
    if code == 1:
        return "ACCUSED" if variant else "noticed"
    if code == 0:
        return "acquitted" if variant else "missed"
    if code == 4:
        return "undecided"
    raise Trouble(f"assay ended with exit code {code}")


# ---- All of them. ----------------------------------------------------------------------------------

def listed(folder):
    """The ids of list.md, which must be those of the patches."""
    return set(re.findall(r"^\| `([a-z0-9-]+)` \|", (folder / "list.md").read_text(encoding="utf-8"), re.MULTILINE))


def choose(folder, globs):
    patches = {path.stem: path for path in sorted((folder / "patches").glob("*.patch"))}
    odd = listed(folder) ^ set(patches)
    if odd:
        sys.exit(f"list.md and patches/ differ in {', '.join(sorted(odd))}")
    chosen = {name: path for name, path in patches.items() if any(fnmatch.fnmatch(name, g) for g in globs)}
    if not chosen:
        sys.exit(f"no patch is named {' or '.join(globs)}")
    # Patches of the reference come last: they change the suite's own build.
    return dict(sorted(chosen.items(), key=lambda item: (of_reference(patched_file(item[1])), item[0])))


def check_controls(args, tree, files):
    """Without a patch everything must conform, or no verdict below would mean anything."""
    for file in CONTROLS:
        if any(f.startswith(file) for f in files):
            name = "control-" + Path(file).stem
            code, failed, _ = run_case(args, tree, name, file, None)
            if code:
                raise Trouble(f"{file} without a patch ends with exit code {code} {failed}")
            print(f"{name:34} conformant", flush=True)


def run_all(args, chosen):
    tree = Tree(args.root, args.build, args.jobs)
    check_controls(args, tree, [patched_file(patch) for patch in chosen.values()])
    cases = []
    for name, patch in chosen.items():
        variant, began = name.startswith("ok-"), time.monotonic()
        code, failed, level, why = None, "", "", ""
        try:
            code, failed, level = run_case(args, tree, name, patched_file(patch), patch)
            state = state_of(variant, code)
        except Trouble as trouble:
            state, why = "TROUBLE", str(trouble)
        print(f"{name:34} {state:9} {level:5} {failed or why}".rstrip(), flush=True)
        cases.append({"name": name, "sort": "variant" if variant else "fault", "file": patched_file(patch),
                      "state": state, "level": level, "exit_code": code, "first_failing_case": failed, "trouble": why,
                      "seconds": round(time.monotonic() - began, 1)})
    return cases


def report(args, cases):
    def count(sort, state=None):
        return sum(case["sort"] == sort and state in (None, case["state"]) for case in cases)

    faults, noticed = count("fault"), count("fault", "noticed")
    variants, acquitted, accused = count("variant"), count("variant", "acquitted"), count("variant", "ACCUSED")
    result = {"faults": faults, "noticed": noticed, "variants": variants, "acquitted": acquitted,
              "accused": accused, "cases": cases}
    (args.build / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{noticed} of {faults} faults noticed, {acquitted} of {variants} variants acquitted")
    if any(case["state"] == "TROUBLE" for case in cases):
        return 3
    return 0 if noticed >= ENOUGH * faults and not accused else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=Path)
    parser.add_argument("root", type=Path)
    parser.add_argument("build", type=Path)
    parser.add_argument("--level", nargs="+", default=["smoke", "full"])
    parser.add_argument("--only", nargs="+", default=["*"], metavar="GLOB")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args()
    args.list, args.root, args.build = args.list.resolve(), args.root.resolve(), args.build.resolve()
    args.build.mkdir(parents=True, exist_ok=True)
    try:
        chosen = choose(args.list, args.only)
        if not args.dry_run:
            return report(args, run_all(args, chosen))
    except Trouble as trouble:
        print(f"nothing can be judged: {trouble}", file=sys.stderr)
        return 3
    bad = 0
    for name, patch in chosen.items():
        try:
            dry_case(args, name, patched_file(patch), patch)
            print(f"{name:34} applies and compiles")
        except Trouble as trouble:
            bad += 1
            print(f"{name:34} TROUBLE   {trouble}")
    print(f"{len(chosen) - bad} of {len(chosen)} patches apply and compile")
    return 3 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
