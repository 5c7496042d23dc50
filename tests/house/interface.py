#!/usr/bin/env python3
"""What is told of the interface beside its tables is what they say.

    interface.py ASSAY ROOT [--self-test]

`assay interface` is compared with the JSON that the Python module reads, with docs/interface.md, and with the table of
chapter 6 (FRM-04). With --self-test each of them is changed, and each change must be found."""
import json
import re
import subprocess
import sys
from pathlib import Path

JSON = "conformance/adapters/python/assay_iut/interface.json"
PAGE, SPEC = "docs/interface.md", "spec/06-conformance.md"


def rows_of_spec(text):
    """{op: (args, tensors of the request)} of the table, names alone."""
    rows = {}
    for line in text.split("**FRM-04**")[1].split("**FRM-05**")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 3 or not cells[0].startswith("`"):
            continue
        args = re.sub(r"\([^)]*\)", "", cells[1]).replace(",", " ").split()
        request = cells[2].split("the reply has")[0]
        tensors = re.findall(r"`(\w+)", request)
        for op in re.findall(r"`(\w+)`", cells[0]):
            rows[op] = (set(args) - {"none"}, tensors)
    return rows


def differences(interface, page, told):
    """What the three files say otherwise."""
    found = []
    if told[JSON] != interface:
        found.append(f"{JSON} is stale: assay interface > {JSON}")
    if told[PAGE] != page:
        found.append(f"{PAGE} is stale: assay interface --markdown > {PAGE}")
    spec = rows_of_spec(told[SPEC])
    for row in json.loads(interface)["operations"]:
        args = set(row["texts"]) | {name for name, _, _ in row["args"]}
        tensors = [name for name, _, _ in row["request"]]
        if spec.get(row["op"]) != (args, tensors):
            found.append(f"{SPEC}: FRM-04 says of {row['op']} {spec.get(row['op'])}, the program {(args, tensors)}")
    return found


def main():
    assay, root = sys.argv[1], Path(sys.argv[2])
    told = {name: (root / name).read_text() for name in (JSON, PAGE, SPEC)}
    ask = lambda *words: subprocess.run([assay, "interface", *words], capture_output=True, text=True, check=True).stdout
    interface, page = ask(), ask("--markdown")
    if sys.argv[3:] != ["--self-test"]:
        found = differences(interface, page, told)
        print("\n".join(found) or "the JSON, the page and FRM-04 say what the tables say")
        return 1 if found else 0
    for name, old, new in ((JSON, '"gamma + 2"', '"gamma + 1"'), (PAGE, "`gumbel` (2)", "`gumbel` (3)"),
                           (SPEC, "| n, steps |", "| n |"), (SPEC, "`sequence`, `keep` |", "`keep`, `sequence` |")):
        assert old in told[name], (name, old)
        if len(differences(interface, page, {**told, name: told[name].replace(old, new, 1)})) != 1:
            print(f"{name}: {old} as {new} is not noticed")
            return 1
    print("four planted differences are noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
