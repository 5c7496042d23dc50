"""transformers: drafts of a model with another tokenizer, sampled, without the suite.

    CUDA_VISIBLE_DEVICES= build/audit-engines/transformers/bin/python docs/audits/transformers_universal.py [SEEDS]

The draft's tokenizer has one token more, which no text has: the last id, or the first. `map`: the draft's head is
pruned to the common tokens; which tokens do its columns stand for as drafts, and which in q? `law`: the first two
tokens at T = 1, top_k 3, counted over seeds. `embedding`: the target drafts for itself with top_k 1, so that every
draft must be accepted. Each is asked of transformers as it is, with the common tokens in ascending order of the draft's
ids (`ascending`), and with the drafts of earlier steps by their ids, too (`and ids`)."""

import collections
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HERE / "conformance/adapters/python"))
import torch
import transformers
from transformers.generation.candidate_generator import AssistantToTargetTranslator as Translator
from transformers_generate import ascending, tokenizer_of

TEXT = torch.tensor([[256, *b"And it came to pass"]])
V, DRAFTS, MORE = 258, 4, ["[more]"]


def load(name, more=None):
    """A model of the trained pair, with a row of zeros for the token more: behind the others, or before them."""
    model = transformers.AutoModelForCausalLM.from_pretrained(HERE / "vectors/models" / name, dtype=torch.float32)
    model.generation_config = transformers.GenerationConfig()
    model.generation_config.num_assistant_tokens_schedule = "constant"
    model.generation_config.num_assistant_tokens = DRAFTS
    model.generation_config.assistant_confidence_threshold = 0
    if more:
        old = model.get_input_embeddings().weight.clone(), model.get_output_embeddings().weight.clone()
        model.resize_token_embeddings(V + 1, mean_resizing=False)
        for part, rows in zip((model.get_input_embeddings(), model.get_output_embeddings()), old):
            row = torch.zeros_like(rows[:1])
            part.weight.copy_(torch.cat([rows, row] if more == "last" else [row, rows]))
    return model


def universal(name, more):
    """Fresh tokenizers, too: transformers keeps a translator, and with it a pruned head, for each pair of them."""
    return {"assistant_model": load(name, more), "tokenizer": tokenizer_of(V),
            "assistant_tokenizer": tokenizer_of(V, MORE, first=more == "first")}


def columns(more):
    """Of the pruned head: how many stand for one token as drafts, and for another in q."""
    translator = Translator(tokenizer_of(V), tokenizer_of(V, MORE, first=more == "first"), V, load("draft", more), True)
    drafts = translator._assistant_to_target_input_ids[translator.assistant_overlap_token_ids]
    row = translator.get_target_logits(torch.arange(float(V))[None])[0]
    return sum(int(row[token]) != column for column, token in enumerate(drafts.tolist()))


def drafts_by_id():
    """Makes the drafts of a step stand in the draft's next input as ids, where they stand as columns of its head."""
    own = Translator.get_target_ids

    def noted(self, assistant_input_ids, target_input_ids, candidates):
        out, n = own(self, assistant_input_ids, target_input_ids, candidates), assistant_input_ids.shape[1]
        candidates[:, n:] = self.assistant_overlap_token_ids[candidates[:, n:]]
        return out

    Translator.get_target_ids = noted


def settings(k, top_k):
    return transformers.GenerationConfig(max_new_tokens=k, do_sample=True, top_k=top_k, pad_token_id=0)


def pairs(target, seeds, options):
    """The first two tokens at T = 1, top_k 3, counted."""
    seen = collections.Counter()
    for seed in range(seeds):
        torch.manual_seed(seed)
        out = target.generate(TEXT, attention_mask=torch.ones_like(TEXT), generation_config=settings(6, 3), **options)
        seen[bytes(out[0, TEXT.shape[1]:][:2].tolist())] += 1
    return seen


def forwards(target, options):
    """Of the target for 40 tokens with top_k 1, and the text."""
    calls = []
    hook = target.register_forward_hook(lambda *_: calls.append(1))
    out = target.generate(TEXT, attention_mask=torch.ones_like(TEXT), generation_config=settings(40, 1), **options)
    hook.remove()
    return len(calls), bytes(out[0, TEXT.shape[1]:].tolist())


def chi_square(a, b):
    """Of two samples of one size, over the outcomes that both together have 10 times, the others as one."""
    often = [x for x in a | b if a[x] + b[x] >= 10]
    rows = [(a[x], b[x]) for x in often]
    rows.append((sum(a.values()) - sum(r[0] for r in rows), sum(b.values()) - sum(r[1] for r in rows)))
    rows = [r for r in rows if sum(r)]
    return sum((x - y) ** 2 / (x + y) for x, y in rows), len(rows) - 1


def report(name, target, seeds, plain, more):
    def options(draft):
        return universal(draft, more) if more else {"assistant_model": load(draft)}

    if more:
        print(f"map, {name}: {columns(more)} of {V} columns mean two tokens")
    seen = pairs(target, seeds, options("draft"))
    print(f"law, {name}: {seen.most_common(10)}, chi-square {{:.1f}} on {{}}".format(*chi_square(plain, seen)))
    print(f"embedding, {name}: {forwards(target, options('target'))}", flush=True)


def main(seeds):
    target = load("target")
    plain = pairs(target, seeds, {})
    print(f"law, plain: {plain.most_common(10)}")
    print(f"embedding, plain: {forwards(target, {})}")
    report("one tokenizer", target, seeds, plain, None)
    for mend in ("as it is", "ascending", "and ids"):
        {"as it is": lambda: None, "ascending": ascending, "and ids": drafts_by_id}[mend]()
        for more in ("last", "first"):
            report(f"{mend}, more is {more}", target, seeds, plain, more)


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["400"])[0]))
