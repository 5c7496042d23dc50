#!/usr/bin/env python3
"""Holds the limits of docs/contributing.md: how many files of the product name a concept, counted as ci/touches does,
and how long its example of a drafter is. usage: additions.py ROOT"""

import re
import sys
from pathlib import Path

FOLDERS = ("ref", "gpu", "conformance", "vectors")
NO_SOURCE = (".json", ".pyc", ".safetensors")
EXAMPLE, LINES, SAME = "tests/ref/repeat.c", 30, 5
# What a drafter has to say whatever its method is.
OF_ANY = re.compile(r'#include "ref/|as_drafter base;|\(void\)|as_drafter_ops operations|as_drafter_make\(|malloc\('
                    r"|no memory|\*drafter =|return AS_OK;")
wrong = []


def names_are_few(root, recipes):
    limits = {name: int(most) for name, most in re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", recipes, re.M)}
    if not limits:
        wrong.append("docs/contributing.md has no table of limits")
    count = dict.fromkeys(limits, 0)
    for folder in FOLDERS:
        for file in (root / folder).rglob("*"):
            if file.suffix in NO_SOURCE or not file.is_file():
                continue
            words = set(re.findall(rb"\w+", file.read_bytes()))
            for name in limits:
                count[name] += name.encode() in words
    for name in limits:
        print(f"{name}: {count[name]} files of at most {limits[name]}")
        if count[name] > limits[name]:
            wrong.append(f"{name} is named in too many files: ci/touches {name} lists them, a table may tell it once")


def example_is_short(root, recipes):
    lines = (root / EXAMPLE).read_text().splitlines()
    same = [line for line in lines if OF_ANY.search(line)]
    print(f"{EXAMPLE}: {len(lines)} lines of at most {LINES}, {len(same)} of any drafter of at most {SAME}")
    if len(lines) > LINES or len(same) > SAME:
        wrong.append(f"{EXAMPLE} is too long")
    if f"`{EXAMPLE}`, {len(lines)} lines" not in recipes:
        wrong.append(f"docs/contributing.md does not say that {EXAMPLE} has {len(lines)} lines")


root = Path(sys.argv[1])
recipes = (root / "docs/contributing.md").read_text()
names_are_few(root, recipes)
example_is_short(root, recipes)
if wrong:
    sys.exit("\n".join(wrong))
