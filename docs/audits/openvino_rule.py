"""OpenVINO GenAI with a draft model: is the rule of its sampler what it does? Without the suite.

    build/audit-engines/openvino/bin/python docs/audits/openvino_rule.py

The rule is that of `Sampler::validate_candidate` and its caller, in src/cpp/src/sampling/sampler.cpp. A draft is taken
with the probability q of the draft over p of a token that the target has drawn beside it. In the place of a refused one
stands a token of the target's next row, behind the refused one. The rows here are those of the NumPy engine of the
examples."""

import collections
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HERE / "conformance/adapters/python"))
sys.path.insert(0, str(HERE / "docs/audits"))
import numpy as np
from example_generate import Llama
from openvino_drafts import answers, pipeline

DRAFTS, SEEDS = 4, 1000


def row(model, tokens, top_k):
    """The law of the next token: token to probability."""
    model.held = 0
    z = model.logits(np.array(tokens), 1)[0].astype(float)
    best = np.argsort(-z, kind="stable")[:top_k]
    e = np.exp(z[best] - z[best[0]])
    return dict(zip(best.tolist(), e / e.sum()))


def greedy_blocks(target, draft, tokens, k):
    """With top_k 1, q of any draft over p of any token is 1: all drafts are taken, then comes a token of the target. The
    budget's last token is the target's, too."""
    out = []
    while len(out) < k:
        for model in [target] + [draft] * min(DRAFTS, k - len(out) - 2):
            out.append(max(row(model, tokens + out, 1)))
    return bytes(out)


def letters(law):
    return {chr(token): round(float(x), 3) for token, x in law.items()}


def main():
    target, draft = (Llama(str(HERE / "vectors/models" / name)) for name in ("target", "draft"))
    drafted = pipeline(DRAFTS)
    print("1. top_k 1, 40 tokens: the engine with drafts; the rule")
    for text in ("And it came to pass", "The LORD is my shepherd; ", "Blessed are the poor in spirit"):
        got = answers(drafted, DRAFTS, [text], 40, do_sample=True, top_k=1, rng_seed=0)[0]
        due = greedy_blocks(target, draft, [256, *text.encode()], 40)
        print("  ", got, "the same" if got == due else due)

    print(f"2. T = 1, top_k 3, {SEEDS} seeds: what follows the blank that the target says behind 'And it came to pass'")
    seen = collections.Counter(a[1:2] for a in (
        answers(drafted, DRAFTS, ["And it came to pass"], 6, do_sample=True, top_k=3, rng_seed=s)[0]
        for s in range(SEEDS)) if a[:1] == b" ")
    at = [256, *b"And it came to pass "]
    p, q = row(target, at, 3), row(draft, at, 3)
    print("   engine with drafts:", dict(seen.most_common()), "of", sum(seen.values()))
    print("   plain law:", letters(p), "of drafts:", letters(q))
    for d in q:
        accepted = sum(x * min(101, int(100 * q[d] / x) + 1) / 101 for x in p.values())
        print(f"   the rule, draft {chr(d)!r}: accepted {accepted:.3f}, else", letters(row(target, [*at, d], 3)))


if __name__ == "__main__":
    main()
