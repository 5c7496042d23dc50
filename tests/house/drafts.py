#!/usr/bin/env python3
"""Holds the table of spec/README.md against the chapters: it has every DRAFT clause, and no other.

    drafts.py ROOT    fails for a clause that stands in one of them alone
"""

import re
import sys
from pathlib import Path

ID = r"[A-Z]+-\d+"


def table_of(text):
    """The clauses of the first column, "LAH-33 to LAH-36" being four."""
    found = set()
    for row in re.findall(rf"^\| ({ID}[^|]*) \|", text, re.M):
        for part in row.split(", "):
            first, _, last = part.partition(" to ")
            kind, low = first.split("-")
            high = last.split("-")[1] if last else low
            found |= {f"{kind}-{n:02d}" for n in range(int(low), int(high) + 1)}
    return found


def drafts_of(text):
    return set(re.findall(rf"^\*\*({ID})\*\* \(DRAFT\)", text, re.M))


def main():
    root = Path(sys.argv[1])
    table = table_of((root / "spec/README.md").read_text())
    drafts = drafts_of("\n".join(p.read_text() for p in sorted((root / "spec").glob("[0-9]*.md"))))
    for clause in sorted(table ^ drafts):
        print(f"{clause} is DRAFT in {'spec/README.md' if clause in table else 'its chapter'} alone")
    return not drafts or table != drafts


sys.exit(main())
