"""A failed case is asked again, and "state" or "arithmetic" is said (VER-12): the words of again.txt, and none for an
implementation that passes.

again.py ASSAY LIST"""
import json
import subprocess
import sys
import tempfile
import time


def words(assay, iut, check):
    """The words of the failed cases of a check, and how many failed."""
    with tempfile.NamedTemporaryFile() as report:
        subprocess.run([assay, "run", "--iut", iut, "--only", check + "/*", "--level", "smoke", "--json", report.name],
                       stdout=subprocess.DEVNULL)
        cases = json.load(report)["cases"]
    failed = [c for c in cases if c["state"] in ("FAIL", "CRASH")]
    return [c["again"]["word"] for c in failed if "again" in c], [c["again"]["why"] for c in failed if "again" in c], len(failed)


def main(assay, faults):
    wrong = 0
    for line in open(faults):
        if line.startswith("#"):
            continue
        due, name, check = line.split()
        start = time.time()
        got, why, failed = words(assay, "mutant:" + name, check)
        right = due in got and set(got) <= {due, "unsaid"}
        wrong += not right
        print(f"{'ok   ' if right else 'WRONG'} {due:10} {name:26} {check:17} {' '.join(got)} of {failed} {time.time()-start:.1f} s", "" if right else why)
    sys.exit(wrong > 0)


main(*sys.argv[1:])
