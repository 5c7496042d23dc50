#!/usr/bin/env python3
"""Compiles every Python file of the tree, and runs none: many an engine's adapter is started by no test.

    scripts.py ROOT     exit code 0 if all compile, 1 if not
"""

import sys
from pathlib import Path

ROOMS = ("ci", "conformance", "docs", "gpu", "tests", "vectors")


def main(root):
    bad = 0
    for path in sorted(file for room in ROOMS for file in Path(root, room).rglob("*.py")):
        try:
            compile(path.read_text(encoding="utf-8"), str(path), "exec")
        except (SyntaxError, ValueError) as error:
            bad += 1
            print(f"{path}: {error}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
