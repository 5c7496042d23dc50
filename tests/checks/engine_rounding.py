"""What roundings do to the law of a token in transformers: beside engine_rounding.c, a real engine.

    build/audit-engines/transformers/bin/python tests/checks/engine_rounding.py FOLDER [PROMPTS]

FOLDER is what `assay models export` wrote. Rows of plain decoding, alone and token by token, are held against rows of
the same tokens in one chunk, in a call with three other requests. Continuations are drawn from the model's law.
"""
import random
import sys

import torch
from transformers import AutoModelForCausalLM

TOKENS, COMPANY, BYTES = 5, 4, 256
SAMPLINGS = [(0.7, 0), (1.0, 0), (1.3, 0), (1.0, 4)]  # temperature, top-k


def served(row, temperature, top_k, like):
    """The law of a row; top-k keeps the tokens that it keeps of `like`."""
    row = row.double() / temperature
    if top_k:
        kept = torch.full_like(row, -torch.inf)
        ids = like.topk(top_k).indices
        kept[ids] = row[ids]
        row = kept
    return torch.softmax(row, -1)


def rows_of(model, vocabulary, length):
    """Rows behind a random prompt, in the two ways: two lists of TOKENS + 1."""
    batch = torch.tensor([[random.randrange(min(vocabulary, BYTES)) for _ in range(length + TOKENS)]
                          for _ in range(COMPANY)])
    out = model(batch[:1, :length], use_cache=True)
    alone = [out.logits[0, -1]]
    for at in range(length, length + TOKENS):
        batch[0, at] = torch.multinomial(torch.softmax(alone[-1].double(), -1), 1)
        out = model(batch[:1, at:at + 1], past_key_values=out.past_key_values, use_cache=True)
        alone.append(out.logits[0, -1])
    out = model(batch[:, :length], use_cache=True)
    first = out.logits[0, -1]
    return alone, [first, *model(batch[:, length:], past_key_values=out.past_key_values, use_cache=True).logits[0]]


@torch.no_grad()
def main(folder, prompts):
    torch.set_num_threads(1)
    for name in ("few", "target"):
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            random.seed(1)
            torch.manual_seed(1)
            model = AutoModelForCausalLM.from_pretrained(f"{folder}/{name}", dtype=dtype).eval()
            far = [[] for _ in SAMPLINGS]
            for _ in range(prompts):
                for a, b in zip(*rows_of(model, model.config.vocab_size, random.randint(1, 24))):
                    for sampling, d in zip(SAMPLINGS, far):
                        p, q = served(a, *sampling, a), served(b, *sampling, a)
                        d.append(float((p - q).abs().sum() / 2))
            print(name, dtype, "  ".join(f"T {t} top-k {k}: {sum(d) / len(d):.1e} {max(d):.1e}"
                                         for (t, k), d in zip(SAMPLINGS, far)), flush=True)


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40)
