#!/usr/bin/env python3
"""Runs the suite against the faults and correct variants of list.md, one at a time, and says what it noticed.

    run.py ROOT OUT.json [--only NAME ...]

ROOT is a built checkout of the project (ROOT/build/assay). A name that begins with `ok-` is a correct variant, any
other one a fault. Exit code 0 if all faults were noticed and all variants acquitted, else 1.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT = 300  # seconds an item may take
# A whole smoke run of these takes more than a minute: the sampled laws are left out.
OPTIONS = {name: ["--only", "engine.greedy*"] for name in
           ("prompts-equal-stride", "eos-from-config", "accepted-lost-step", "ok-accepted-total")}


def listed():
    text = (HERE / "list.md").read_text(encoding="utf-8")
    return list(dict.fromkeys(re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.MULTILINE)))


def failing(node, found):
    """Ids of cases in a report for programs that end otherwise than well, wherever it keeps them."""
    if isinstance(node, dict):
        state = node.get("state") or node.get("status")
        name = node.get("id") or node.get("case")
        if isinstance(state, str) and isinstance(name, str) and state.upper() in {
                "FAIL", "CRASH", "TIMEOUT", "ERROR", "INCONCLUSIVE", "UNAVAILABLE"}:
            found.append(f"{state} {name}")
        for value in node.values():
            failing(value, found)
    elif isinstance(node, list):
        for value in node:
            failing(value, found)
    return found


def run(root, name, folder):
    report = Path(folder) / f"{name}.json"
    words = [str(root / "build/assay"), "run", "--iut", f"exec:/usr/bin/python3 {HERE}/patches/{name}.py",
             "--level", "smoke", "--json", str(report), "--quiet", *OPTIONS.get(name, [])]
    environment = dict(os.environ, PYTHONPATH=str(root / "conformance/adapters/python"), PYTHONDONTWRITEBYTECODE="1")
    began = time.monotonic()
    try:
        done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=LIMIT)
        code, said = done.returncode, done.stdout.strip()[-600:]
    except subprocess.TimeoutExpired:
        code, said = None, f"no end within {LIMIT} s"
    cases, findings = [], []
    if report.exists():
        try:
            whole = json.loads(report.read_text(encoding="utf-8"))
            cases, findings = sorted(set(failing(whole, []))), whole.get("findings", [])
        except ValueError as error:
            said += f" (the report is no JSON: {error})"
    variant = name.startswith("ok-")
    state = {0: "acquitted" if variant else "missed", 1: "ACCUSED" if variant else "noticed",
             4: "undecided" if variant else "missed"}.get(code, "trouble")
    return {"name": name, "sort": "variant" if variant else "fault", "state": state, "exit_code": code,
            "verdict": said, "failing": len(cases), "cases": cases[:40], "findings": findings,
            "options": OPTIONS.get(name, []), "command": shlex.join(words),
            "seconds": round(time.monotonic() - began, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    args = parser.parse_args()
    names, there = listed(), {p.stem for p in (HERE / "patches").glob("*.py") if not p.stem.endswith("_base")}
    if set(names) != there or len(names) != len(there):
        raise SystemExit(f"list.md and patches/ differ in {sorted(set(names) ^ there)}")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only or names:
            item = run(args.root.resolve(), name, folder)
            results.append(item)
            first = item["cases"][0] if item["cases"] else item["verdict"].splitlines()[-1:] or ""
            print(f"{name:26} {item['state']:9} {item['exit_code']!s:4} {item['seconds']:6.1f} s  "
                  f"{item['failing']:4} {first}", flush=True)

            def count(sort, state=None):
                return sum(r["sort"] == sort and state in (None, r["state"]) for r in results)

            summary = {"faults": count("fault"), "noticed": count("fault", "noticed"),
                       "variants": count("variant"), "acquitted": count("variant", "acquitted")}
            args.out.write_text(json.dumps(dict(summary, items=results), indent=1, ensure_ascii=False) + "\n",
                                encoding="utf-8")
    print(f"{summary['noticed']} of {summary['faults']} faults noticed, "
          f"{summary['acquitted']} of {summary['variants']} variants acquitted")
    good = summary["noticed"] == summary["faults"] and summary["acquitted"] == summary["variants"]
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
