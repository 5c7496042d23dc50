"""Implementations that are right where a suite usually looks, at the full level: each is found, by the cases that are
said here and no others, and its honest twin by none.

cheaters.py ASSAY CHEATER LAYOUT: the program, and the plugins of cheater.c and cheater_layout.c"""
import fnmatch
import json
import subprocess
import sys
import tempfile

LAW = ("law.verify/V8*", "law.verify/drawn/*", "law.calls/*")
MODEL = ("lm.rows/*-layout", "lm.random/*")
DRAWN = ("law.verify/drawn/*", "law.calls/drawn/*")
# Plugin, its options, what is asked, what must find it and may fail: all of these, each at least once.
CHEATS = (
    ("law", "later", LAW, ("law.verify/V8*", "law.verify/drawn/*", "law.calls/*")),
    ("law", "sizes", LAW, DRAWN),
    ("law", "small", LAW, DRAWN),
    ("law", "honest", LAW, ()),
    ("layout", "", MODEL, ("lm.random/*",)),
    ("layout", "honest", MODEL, ()),
)


def failures(assay, plugin, options, asked):
    """The exit code, the failed cases, the largest ln E, and the line that it must stay under."""
    only = [word for glob in asked for word in ("--only", glob)]
    with tempfile.NamedTemporaryFile() as report:
        code = subprocess.run([assay, "run", "--iut", f"plugin:{plugin}", "--iut-options", options, "--level", "full",
                               "--jobs", "1", *only, "--json", report.name], stdout=subprocess.DEVNULL).returncode
        found = json.load(report)
    failed = [case for case in found["cases"] if case["state"] == "FAIL"]
    log_e = [case["log_e"] for case in failed if "log_e" in case]
    return code, [case["case"] for case in failed], log_e, found["log_e_fail"]


def main(assay, law, layout):
    wrong = 0
    for plugin, options, asked, finders in CHEATS:
        code, failed, log_e, line = failures(assay, {"law": law, "layout": layout}[plugin], options, asked)
        right = code == (1 if finders else 0)
        right &= all(any(fnmatch.fnmatch(case, glob) for case in failed) for glob in finders)
        right &= all(any(fnmatch.fnmatch(case, glob) for glob in finders) for case in failed)
        wrong += not right
        margin = f", ln E {min(log_e):.0f} to {max(log_e):.0f}, line {line:.1f}" if log_e else ""
        print(f"{'ok' if right else 'WRONG'}: {plugin} {options or 'cheats'}: {len(failed)} cases fail{margin}")
    sys.exit(wrong > 0)


main(*sys.argv[1:])
