#!/usr/bin/env python3
"""Holds the adapter openai_http.py against servers that are right, wrong, or no evidence.

    openai_http.py ASSAY ADAPTERS

A server that is right passes, whatever its manners. A wrong one fails. What is no whole answer is neither."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ASSAY, ADAPTERS = sys.argv[1:]
sys.path.insert(0, ADAPTERS)
import assay_iut
import fake_openai
import numpy as np
import openai_http

KEY = "sk-secret-of-the-test"
TOKENS, OTHERS, REFUSAL, NOTHING = "its tokens", "other tokens", assay_iut.Unsupported, assay_iut.Unavailable
ANSWERS = {  # of the adapter
    "right": TOKENS, "ids": TOKENS, "keeps-stop": TOKENS, "without-usage": TOKENS, "busy-once": TOKENS,
    "other-token": OTHERS, "one-less": OTHERS, "one-more": OTHERS, "refuses": REFUSAL,
    "busy": NOTHING, "page": NOTHING, "absent": NOTHING, "broken": NOTHING, "cut-body": NOTHING, "cut-unnoticed":
    NOTHING, "closes": NOTHING, "moved": NOTHING, "tells-key": NOTHING, "empty": NOTHING, "empty-stop": NOTHING,
    "own-end": NOTHING, "short": NOTHING, "other-letters": NOTHING, "no-reason": NOTHING, "no-choices": NOTHING,
    "error-in-200": NOTHING, "stalls": NOTHING, "trickles": NOTHING, "busy-long": NOTHING,
}
SLOW = ("stalls", "trickles", "busy-long")
STATES = {  # of a case, and the exit code of the run
    "right": ("pass", 0), "other-token": ("fail", 1), "one-less": ("fail", 1), "one-more": ("fail", 1),
    "refuses": ("fail", 1), "absent": ("unavailable", 4), "stalls": ("unavailable", 4), "empty": ("unavailable", 4),
    "tells-key": ("unavailable", 4),
}
faults = 0


def wrong(text):
    global faults
    faults += 1
    print(text)


def answer(url, models, eos, strength=(1, 0, 0), **options):
    """What the adapter makes of a server: its tokens, or the error."""
    how = argparse.Namespace(**dict({"model": "m", "text": False, "parallel": 2, "plain": [], "servers": [("few", url)],
                                     "penalties": "repetition presence frequency", "body": {"ignore_eos": True},
                                     "within": 100}, **options))
    prompts = [np.array([0, 1, 2, 3], "<i4"), np.array([5, 4], "<i4")]
    try:
        greedy = assay_iut.Sampling(0, 0, 1.0, 0.0)
        answers = openai_http.Engine(how).generate(*models, prompts, 3, 12, eos, greedy, [7, 8],
                                                   [assay_iut.Processors(1, 0, 0), assay_iut.Processors(*strength)])
        return [tokens for tokens, _ in answers]
    except (assay_iut.Unavailable, assay_iut.Unsupported) as error:
        if KEY in str(error):
            wrong(f"{url}: the key was told")
        return type(error)


def by_adapter(at, models):
    for eos in (-1, 4):
        due = answer(f"{at}/right/v1", models, eos)
        if any(len(t) != 12 and t[-1:] != [eos] for t in due):
            wrong(f"right, eos {eos}: {due}")
        for way, what in ANSWERS.items():
            if eos >= 0 and way in ("own-end", "short"):
                continue  # looks like an end that was asked for
            begin = time.monotonic()
            got = answer(f"{at}/{way}/v1", models, eos, within=0.5 if way in SLOW else 100)
            if way in SLOW and time.monotonic() - begin > 10:
                wrong(f"{way}, eos {eos}: the adapter took {time.monotonic() - begin:.1f} s")
            kind = TOKENS if got == due else OTHERS if isinstance(got, list) else got
            if kind != what:
                wrong(f"{way}, eos {eos}: {what} was due, but it is {got}")
        if answer(f"{at}/right/v1", models, eos, text=True) != due:
            wrong("text: other tokens than with ids")
    plain = answer(f"{at}/right/v1", models, -1)
    for penalties in ((1.8, 0, 0), (1, 2, 0), (1, 0, 2)):
        got = answer(f"{at}/right/v1", models, -1, penalties)
        if got[0] != plain[0] or got[1] == plain[1]:
            wrong(f"{penalties}: they have to change the second request's tokens alone")
        if answer(f"{at}/right/v1", models, -1, penalties, penalties="") != plain:
            wrong(f"{penalties}: they were sent, though the server was not said to take them")
    if answer("http://127.0.0.1:9/v1", models, -1) is not NOTHING:
        wrong("no server is no evidence")


def by_suite(at, folder):
    report, log = (os.path.join(folder, name) for name in ("report.json", "log"))
    for way, (state, code) in STATES.items():
        case = "engine.facts/few-draft" if state == "pass" else "engine.greedy/few-gamma"
        adapter = f"{sys.executable} {ADAPTERS}/openai_http.py few={at}/{way}/v1"
        adapter += " --within " + ("1" if way == "stalls" else "90")
        done = subprocess.run([ASSAY, "run", "--iut", f"exec:{adapter}", "--only", case, "--level", "smoke", "--json",
                               report, "--timeout", "100", "--iut-log", log], capture_output=True, text=True)
        with open(report, encoding="utf-8") as first, open(log, encoding="utf-8") as second:
            text = first.read()
            said = done.stdout + done.stderr + text + second.read()
        states = {c["state"].lower() for c in json.loads(text)["cases"]}
        if states != {state} or done.returncode != code:
            wrong(f"{way}: {state} was due, but it is {states}, exit code {done.returncode}:\n{said[:1500]}")
        if KEY in said:
            wrong(f"{way}: the key was told")


def main():
    os.environ[openai_http.KEY] = KEY
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([ASSAY, "models", "export", folder], check=True, stdout=subprocess.DEVNULL)
        models = [os.path.join(folder, name) for name in ("few", "fewer")]
        server = fake_openai.serve(*models)
        at = f"http://127.0.0.1:{server.server_address[1]}"
        by_adapter(at, models)
        by_suite(at, folder)
        _, paths, headers, bodies = zip(*server.seen)
    elsewhere = [p for p in paths if not p.endswith("/v1/completions")]
    if elsewhere or {h["Authorization"] for h in headers} != {f"Bearer {KEY}"}:
        wrong("a request went to another path, or without its key")
    if {type(b["prompt"]) for b in bodies} != {str, list} or not all(b["ignore_eos"] for b in bodies):
        wrong("prompts went neither as ids nor as text, or the server's end was not forbidden")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
