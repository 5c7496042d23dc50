#!/usr/bin/env python3
"""Holds the adapter openai_http.py against servers that are right, wrong, or no evidence: `openai_http.py ASSAY ADAPTERS`.

A server that is right passes, whatever its manners. A wrong one fails. What is no whole answer is neither."""

import json
import os
import subprocess
import sys
import tempfile

ASSAY, ADAPTERS = sys.argv[1:]
sys.path.insert(0, ADAPTERS)
import fake_openai

KEY = "sk-secret-of-the-test"
DUE = {
    "right": "pass", "ids": "pass", "keeps-stop": "pass", "without-usage": "pass", "busy-once": "pass",
    "other-token": "fail", "one-less": "fail", "one-more": "fail", "refuses": "fail",
    "stalls": "timeout", "busy": "unavailable", "page": "unavailable", "broken": "unavailable",
    "cut-body": "unavailable", "cut-unnoticed": "unavailable", "closes": "unavailable", "moved": "unavailable",
    "tells-key": "unavailable", "empty": "unavailable", "empty-stop": "unavailable", "own-end": "unavailable",
    "short": "unavailable", "other-letters": "unavailable", "no-reason": "unavailable", "no-choices": "unavailable",
    "error-in-200": "unavailable",
}
CODES = {"pass": 0, "fail": 1, "timeout": 1, "unavailable": 4}
faults = 0


def wrong(text):
    global faults
    faults += 1
    print(text)


def run(folder, url, case, *options, level="smoke", timeout=20):
    """Exit code, states of the cases, and all that was said."""
    report, log = (os.path.join(folder, name) for name in ("report.json", "log"))
    adapter = " ".join([sys.executable, os.path.join(ADAPTERS, "openai_http.py"), f"few={url}", *options])
    done = subprocess.run([ASSAY, "run", "--iut", f"exec:{adapter}", "--only", case, "--level", level, "--jobs", "1",
                           "--timeout", str(timeout), "--json", report, "--iut-log", log],
                          capture_output=True, text=True, env=dict(os.environ, OPENAI_API_KEY=KEY))
    with open(report, encoding="utf-8") as file:
        text = file.read()
    with open(log, encoding="utf-8") as file:
        said = done.stdout + done.stderr + text + file.read()
    return done.returncode, {c["state"].lower() for c in json.loads(text)["cases"]}, said


def main():
    with tempfile.TemporaryDirectory() as folder:
        models = os.path.join(folder, "models")
        subprocess.run([ASSAY, "models", "export", models], check=True, stdout=subprocess.DEVNULL)
        server = fake_openai.serve(os.path.join(models, "few"), os.path.join(models, "fewer"))
        at = f"http://127.0.0.1:{server.server_address[1]}"
        for way, due in DUE.items():
            case = "engine.facts/few-draft" if due == "pass" else "engine.greedy/few-gamma"
            code, states, said = run(folder, f"{at}/{way}/v1", case, timeout=2 if way == "stalls" else 20)
            if states != {due} or code != CODES[due]:
                wrong(f"{way}: {due} was due, but it is {states}, exit code {code}:\n{said[:1500]}")
            if KEY in said:
                wrong(f"{way}: the key was told")
        for option in ("--text", "--parallel 4"):
            if run(folder, f"{at}/right/v1", "engine.greedy/few-batch", option)[0] != 0:
                wrong(f"{option}: a right server fails")
        if run(folder, "http://127.0.0.1:9/v1", "engine.greedy/few-gamma")[1] != {"unavailable"}:
            wrong("no server is no verdict")
        ways, paths, headers, bodies = zip(*server.seen)
        if {h["Authorization"] for h in headers} != {f"Bearer {KEY}"} or any(not p.endswith("/v1/completions") for p in paths):
            wrong("a request went to another path, or without its key")
        if {type(b["prompt"]) for b in bodies} != {str, list} or not all(b["ignore_eos"] for b in bodies):
            wrong("prompts went neither as ids nor as text, or the server's end was not forbidden")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
