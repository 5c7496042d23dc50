"""No verdict depends on the words of a message: `assay` and its reworded twin (reworded.c) give
every case the same state, and every run the same exit code. Usage: reword.py ASSAY TWIN HOSTILE"""

import json
import os
import subprocess
import sys
import tempfile

ASSAY, TWIN, HOSTILE = sys.argv[1:]

# Refusals of every kind: by the reference, of what is claimed, and at the start.
RUNS = [
    ["--iut", "ref", "--only", "trace.methods/*refused", "--only", "trace.methods/trace.jacobi*",
     "--only", "trace.methods/trace.lookup*", "--only", "edges.declared/*", "--only", "lm.tree/*",
     "--only", "replay.edges/*", "--only", "pool.values/*", "--only", "format.draw/*",
     "--only", "engine.greedy/few-jacobi-stops"],
    ["--iut", "ref", "--iut-options", "input=logits", "--only", "replay.*", "--only", "edges.*"],
    ["--iut", "mutant:RESIDUAL_FROM_P", "--only", "law.verify/V3-*", "--only", "law.draw/V3-*", "--only", "served.values/*V17"],
    ["--iut", "mutant:ENGINE_RATIO_INVERTED", "--only", "engine.top1/few*"],
    ["--iut", "ref", "--iut-options", "no such option", "--only", "format.draw/*"],
    ["--iut", "mutant:LIAR_UNSUPPORTED", "--only", "residual.values/*"],
    ["--iut", "mutant:LIAR_NO_TEXT", "--only", "residual.values/*"],
    ["--iut", "mutant:LIAR_STATUS", "--only", "residual.values/*"],
    ["--iut", "mutant:LIAR_REFUSES_CREATE", "--only", "residual.values/*"],
    ["--iut", "mutant:LIAR_CLAIMS", "--only", "residual.values/*"],
    ["--iut", f"exec:{HOSTILE} claims_no_device", "--only", "format.draw/*"],
    ["--iut", f"exec:{HOSTILE} claims_failed", "--only", "format.draw/*"],
    ["--iut", f"exec:{HOSTILE} refuse", "--only", "format.draw/*"],
    ["--iut", f"exec:{HOSTILE} refuse_lying", "--only", "format.draw/*"],
]


def run(program, arguments, seed):
    """Exit code, states by case, messages by case; findings are told by their numbers."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        code = subprocess.run([program, "run", "--level", "smoke", "--json", out.name, *arguments],
                              env=dict(os.environ, ASSAY_REWORD=str(seed)), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).returncode
        text = open(out.name).read()
        report = json.loads(text) if text else {"cases": [], "findings": []}
    told = [(c["case"], c["state"], c["detail"]) for c in report["cases"]]
    told += [(f"finding {i}", f["state"], f["text"]) for i, f in enumerate(report["findings"])]
    return code, {case: state for case, state, _ in told}, {case: text for case, _, text in told}


wrong, seen = [], set()
for number, arguments in enumerate(RUNS):
    code, states, messages = run(ASSAY, arguments, 0)
    twin_code, twin_states, twin_messages = run(TWIN, arguments, number + 1)
    seen |= set(states.values()) | {code}
    if code != twin_code:
        wrong.append(f"{arguments}: exit code {code}, in other words {twin_code}")
    wrong += [f"{arguments}: {case}: {states.get(case)}, in other words {twin_states.get(case)}: "
              f"{messages.get(case)}"
              for case in sorted(states.keys() | twin_states.keys())
              if states.get(case) != twin_states.get(case)]
    # A finding's words are the program's last: nothing reads them.
    said = [case for case in states
            if not case.startswith("finding") and messages[case].isascii() and len(messages[case]) > 20]
    if any(messages[case] == twin_messages.get(case) for case in said):
        wrong.append(f"{arguments}: a message has its old words")

# The runs reach what could depend on words.
for due in ("PASS", "FAIL", "UNAVAILABLE", 0, 1, 2, 4):
    if due not in seen:
        wrong.append(f"no run has {due}")
print("\n".join(wrong) or f"{len(RUNS)} runs, the same states in other words")
sys.exit(1 if wrong else 0)
