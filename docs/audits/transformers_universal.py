"""transformers: drafts of a model with another tokenizer, sampled, without the suite. The first two tokens at T = 1,
top_k 3, counted over seeds: plain, assisted, and assisted where the draft's tokenizer has one token more, which no text
has.

    CUDA_VISIBLE_DEVICES= build/audit-engines/transformers/bin/python docs/audits/transformers_universal.py [SEEDS]"""

import collections
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parents[2]
SEEDS = int((sys.argv[1:] or ["400"])[0])
sys.path.insert(0, str(HERE / "conformance/adapters/python"))
import torch
import transformers
from transformers_generate import tokenizer_of

TEXT = torch.tensor([[256, *b"And it came to pass"]])


def load(name):
    model = transformers.AutoModelForCausalLM.from_pretrained(HERE / "vectors/models" / name, dtype=torch.float32)
    model.generation_config = transformers.GenerationConfig()
    model.generation_config.num_assistant_tokens_schedule = "constant"
    model.generation_config.num_assistant_tokens = 4
    return model


def chi_square(a, b):
    """Of two samples of one size, over the outcomes that both together have 10 times, the others as one."""
    often = [x for x in a | b if a[x] + b[x] >= 10]
    rows = [(a[x], b[x]) for x in often]
    rows.append((sum(a.values()) - sum(r[0] for r in rows), sum(b.values()) - sum(r[1] for r in rows)))
    rows = [r for r in rows if sum(r)]
    return sum((x - y) ** 2 / (x + y) for x, y in rows), len(rows) - 1


target, draft, other = load("target"), load("draft"), load("draft")
other.resize_token_embeddings(259, mean_resizing=False)
tokens = {"tokenizer": tokenizer_of(258), "assistant_tokenizer": tokenizer_of(258, ["[more]"])}
ways = {"plain": {}, "assisted": {"assistant_model": draft}, "universal": {"assistant_model": other, **tokens}}
counts = {}
for name, options in ways.items():
    seen = collections.Counter()
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        settings = transformers.GenerationConfig(max_new_tokens=6, do_sample=True, top_k=3, pad_token_id=0)
        out = target.generate(TEXT, attention_mask=torch.ones_like(TEXT), generation_config=settings, **options)
        seen[bytes(out[0, TEXT.shape[1]:][:2].tolist())] += 1
    counts[name] = seen
    print(f"{name}: {seen.most_common(10)}")
for name in ("assisted", "universal"):
    print(f"{name} against plain: chi-square {{:.1f}} on {{}}".format(*chi_square(counts["plain"], counts[name])))
