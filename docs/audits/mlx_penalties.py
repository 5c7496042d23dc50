"""mlx-lm: penalties with a draft model, without the suite. A logits processor must be shown the same tokens by plain
and by speculative generation, and greedy tokens must be the same.

    build/audit-engines/mlx/bin/python docs/audits/mlx_penalties.py"""

import pathlib
import sys

import mlx.core as mx
import mlx_lm.generate  # noqa: F401
import mlx_lm.utils
from mlx_lm.sample_utils import make_logits_processors

HERE = pathlib.Path(__file__).resolve().parents[2] / "vectors/models"
engine = sys.modules["mlx_lm.generate"]
target, draft = (mlx_lm.utils.load_model(HERE / name)[0] for name in ("target", "draft"))
TEXTS = ["And it came to pass", "In the beginning God created", "The LORD is my shepherd; I shall not want.", ""]
PENALTIES = [{}, {"repetition_penalty": 1.3}, {"presence_penalty": 0.8}, {"frequency_penalty": 0.5}]


def run(text, gamma, processors):
    more = {"draft_model": draft, "num_draft_tokens": gamma} if gamma else {}
    step = engine.speculative_generate_step if gamma else engine.generate_step
    prompt = mx.array([256, *text.encode()])
    return bytes(int(t[0]) for t in step(prompt, target, max_tokens=24, logits_processors=processors or None, **more))


for gamma in (0, 2):
    shown = []

    def record(tokens, logits):
        shown.append(len(tokens))
        return logits

    run("And it", gamma, [record])
    print(f"{gamma} drafts, prompt of 7 tokens: the processor is first shown {shown[0]} token(s)")
for penalty in PENALTIES:
    differ = [(text, gamma) for text in TEXTS for gamma in (1, 2, 4)
              if run(text, gamma, make_logits_processors(**penalty)) != run(text, 0, make_logits_processors(**penalty))]
    print(f"{penalty or 'no penalty'}: {len(differ)} of {3 * len(TEXTS)} greedy outputs differ from plain ones;",
          f"of the prompt of one token: {sum(not text for text, _ in differ)}")
