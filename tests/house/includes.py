#!/usr/bin/env python3
"""Holds the rule of docs/architecture.md: who may include whom. Reads its table and every #include.

    includes.py ROOT              fails for an arrow that the table does not have
    includes.py ROOT --self-test  plants three arrows, one at a time, and fails unless each is refused
"""

import re
import sys
from pathlib import Path

FOLDERS = ("ref", "gpu", "conformance", "vectors")
SOURCES = (".c", ".h", ".cu", ".cuh", ".cpp", ".def")
INCLUDE = re.compile(r'^\s*#\s*include\s+("[^"]+"|<(?:ref|gpu|conformance|vectors)/[^>]+>)', re.M)
# An example is built by its users against an installed header.
AS_INSTALLED = {("conformance/adapters/c", "iut.h"): "conformance/iut.h"}
# One arrow of each kind: up, into what is judged, and out of the oracle.
PLANTED = (
    ("ref/num/philox.c", "ref/draft/draft.h"),
    ("conformance/wire/load.c", "conformance/subjects/ref/subject.h"),
    ("conformance/oracle/law/chain.c", "ref/verify/verify.h"),
)


def rule_of(root):
    """{room: [rooms that it may include]}, from the table."""
    text = (root / "docs/architecture.md").read_text()
    table = re.search(r"```rooms\n(.*?)```", text, re.S)
    if not table:
        sys.exit("docs/architecture.md has no table of rooms")
    lines = [line.split(":") for line in table.group(1).splitlines()]
    return {room.strip(): allowed.split() for room, allowed in lines}


def inside(path, room):
    return path == room or path.startswith(room + "/")


def room_of(path, rule):
    """The room of a file: itself, or its folder; None: the table has neither."""
    return next((room for room in (path, path.rpartition("/")[0]) if room in rule), None)


def read(root):
    """{source file: its text}"""
    files = [f for folder in FOLDERS for f in sorted((root / folder).rglob("*")) if f.suffix in SOURCES]
    return {f.relative_to(root).as_posix(): f.read_text(errors="replace") for f in files}


def circle(arrows):
    """A circle of rooms that include each other, or None."""
    done = set()

    def follow(room, path):
        if room in path:
            return path[path.index(room):] + [room]
        if room in done:
            return None
        for other in sorted(arrows.get(room, ())):
            found = follow(other, path + [room])
            if found:
                return found
        done.add(room)
        return None

    return next((found for room in sorted(arrows) if (found := follow(room, []))), None)


def faults(texts, rule):
    """What breaks the rule, a line each."""
    found, arrows, used = [], {}, set()
    for room, allowed in rule.items():
        found += [f"{room}: {name} is no room" for name in allowed if not any(inside(other, name) for other in rule)]
        if not any(room_of(path, rule) == room for path in texts):
            found.append(f"{room}: a room without a file")
    for path, text in texts.items():
        room = room_of(path, rule)
        if room is None:
            found.append(f"{path}: no room of docs/architecture.md has it")
            continue
        for written in INCLUDE.findall(text):
            name = written[1:-1]
            target = AS_INSTALLED.get((room, name), name)
            if target not in texts:
                found.append(f'{path}: "{name}" is no file below the root; write the whole path')
                continue
            other = room_of(target, rule)
            if other is None or other == room:
                continue
            arrows.setdefault(room, set()).add(other)
            fits = [allowed for allowed in rule[room] if inside(other, allowed)]
            used.update((room, allowed) for allowed in fits)
            if not fits:
                found.append(f"{path}: {room} may not include {target}")
    found += [f"{room}: nothing includes {allowed}; take it out of the table"
              for room in rule for allowed in rule[room] if (room, allowed) not in used]
    ring = circle(arrows)
    return found + ([f"a circle of rooms: {' > '.join(ring)}"] if ring else [])


def main():
    root, self_test = Path(sys.argv[1]), sys.argv[2:] == ["--self-test"]
    texts, rule = read(root), rule_of(root)
    if not self_test:
        found = faults(texts, rule)
        print("\n".join(found) if found else f"{len(texts)} files, {len(rule)} rooms, no arrow against the rule")
        return 1 if found else 0
    missed = 0
    for path, target in PLANTED:
        planted = dict(texts, **{path: f'#include "{target}"\n' + texts[path]})
        if not any(f.startswith(f"{path}: ") and target in f for f in faults(planted, rule)):
            print(f"planted and not refused: {path} includes {target}")
            missed += 1
    path, target = PLANTED[0]
    planted = dict(texts, **{path: f"#include <{target}>\n" + texts[path]})
    if not any(f.startswith(f"{path}: ") and target in f for f in faults(planted, rule)):
        print(f"planted in angle brackets and not refused: {path} includes {target}")
        missed += 1
    planted = dict(texts, **{"ref/new/room.c": ""})
    if not any(f.startswith("ref/new/room.c: ") for f in faults(planted, rule)):
        print("a folder that the table does not have is not refused")
        missed += 1
    ring = dict(rule, **{"ref/num": ["ref/draft", *rule["ref/num"]]})
    planted = dict(texts, **{PLANTED[0][0]: f'#include "{PLANTED[0][1]}"\n' + texts[PLANTED[0][0]]})
    if not any("circle" in f for f in faults(planted, ring)):
        print("a circle that the table allows is not refused")
        missed += 1
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
