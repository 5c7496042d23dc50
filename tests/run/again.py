"""A failed case is asked again, and "state" or "arithmetic" is said (VER-12): of each fault of a list its own word. Of
two cases one may be left unsaid, for on a slow machine the time may be too short.

again.py ASSAY LIST"""
import json
import subprocess
import sys
import tempfile


def words(assay, name, check):
    """What was said of the failed cases of a check: words and their reasons."""
    with tempfile.NamedTemporaryFile() as report:
        subprocess.run([assay, "run", "--iut", f"mutant:{name}", "--only", f"{check}/*", "--level", "smoke",
                        "--json", report.name], stdout=subprocess.DEVNULL)
        cases = json.load(report)["cases"]
    said = [case["again"] for case in cases if "again" in case]
    return [again["word"] for again in said], [again["why"] for again in said]


def main(assay, faults):
    wrong = 0
    with open(faults, encoding="utf-8") as lines:
        rows = [line.split() for line in lines if not line.startswith("#")]
    for due, name, check in rows:
        got, why = words(assay, name, check)
        right = due in got and set(got) <= {due, "unsaid"}
        wrong += not right
        print("ok:" if right else "WRONG:", due, name, check, *got, *([] if right else why))
    sys.exit(wrong > 0 or not rows)


main(*sys.argv[1:])
