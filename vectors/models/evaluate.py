"""Measures the pair, through transformers (FP32, CPU), as any user of the checkpoints would load it.

    python evaluate.py bits target [heldout|repetitive]    bits per byte of a set
    python evaluate.py overlap [TARGET DRAFT]              mean sum of min(p, q) on text the target samples
    python evaluate.py prompts                             writes prompts.json and repetitive.json

Bits per byte: a chapter is BOS, bytes, EOS; -log2 of the probabilities of every byte and of EOS, summed,
over the number of bytes (BOS and EOS not counted as bytes). A long chapter is read in windows of 1024
tokens that overlap by half, and each token is scored once, with at least 512 tokens before it where the
chapter has them.
"""
import json
import math
import os
import sys

import torch
from transformers import AutoModelForCausalLM

from text import BOS, EOS, split

HERE = os.path.dirname(os.path.abspath(__file__))
WINDOW, OVERLAP = 1024, 512


def load(folder):
    folder = folder if os.path.isdir(folder) else os.path.join(HERE, folder)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def windows(tokens):
    """[(tokens of the window, first target that counts)]"""
    found, start, scored = [], 0, 1
    while scored < len(tokens):
        found.append((tokens[start:start + WINDOW + 1], scored - start))
        scored = min(len(tokens), start + WINDOW + 1)
        start += OVERLAP
    return found


@torch.no_grad()
def bits(model, documents):
    total = 0.0
    everything = [w for _, text in documents for w in windows([BOS, *text, EOS])]
    everything.sort(key=lambda w: len(w[0]))
    for i in range(0, len(everything), 8):
        batch = everything[i:i + 8]
        longest = max(len(w) for w, _ in batch)
        tokens = torch.tensor([w + [EOS] * (longest - len(w)) for w, _ in batch])
        logp = model(tokens[:, :-1], use_cache=False).logits.log_softmax(-1)
        loss = -logp.gather(2, tokens[:, 1:, None]).squeeze(2)
        for row, (w, first) in zip(loss, batch):
            total += row[first - 1:len(w) - 1].double().sum().item()
    size = sum(len(text) for _, text in documents)
    return total / math.log(2) / size, size


def prompts():
    """The first 20 to 200 bytes of the held-out chapters, then of verses in their middle: 200 prompts."""
    heldout = [text for _, text in split()["heldout"]]
    found = []
    for i in range(200):
        text = heldout[i % len(heldout)]
        verse = text.index(b"\n", len(text) // 2) + 1 if i >= len(heldout) else 0
        verse = 0 if len(text) - verse < 200 else verse
        found.append(text[verse:verse + 20 + i * 37 % 181].decode())
    assert len(set(found)) == 200 and min(map(len, found)) >= 20
    return found


def repetitive():
    """512 bytes of each chapter of the repetitive set from its begin, and from the first verse after a third
    and after two thirds of it where so much is left: text in which something has already come back."""
    found = []
    for _, text in split()["repetitive"]:
        for third in range(3):
            verse = text.index(b"\n", third * len(text) // 3) + 1 if third else 0
            if verse + 512 <= len(text):
                found.append(text[verse:verse + 512].decode())
    return found


def write(name, texts):
    with open(os.path.join(HERE, name), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(t) for t in texts) + "\n]\n")


@torch.no_grad()
def overlap(target, draft, sequences=32, length=128, seed=1):
    """The target samples `length` tokens (T = 1) after each of the first prompts; at each of these
    positions the sum over the vocabulary of min(p, q). What follows an EOS does not count."""
    g, sums = torch.Generator().manual_seed(seed), []
    for prompt in prompts()[:sequences]:
        tokens, cache, feed = [BOS, *prompt.encode()], None, None
        first = len(tokens)
        feed = torch.tensor([tokens])
        while len(tokens) < first + length and tokens[-1] != EOS:
            out = target(feed, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            tokens.append(torch.multinomial(out.logits[0, -1].softmax(-1), 1, generator=g).item())
            feed = torch.tensor([tokens[-1:]])
        whole = torch.tensor([tokens[:-1]])
        p, q = (m(whole, use_cache=False).logits[0, first - 1:].softmax(-1) for m in (target, draft))
        sums.append(torch.minimum(p, q).sum(-1))
    sums = torch.cat(sums)
    return sums.mean().item(), len(sums)


def main(command, *arguments):
    torch.set_num_threads(2)
    if command == "bits":
        sets = split()
        model = load(arguments[0])
        for name in arguments[1:] or ("heldout", "repetitive"):
            value, size = bits(model, sets[name])
            print("%s %s: %.4f bits per byte (%d chapters, %d bytes)" % (
                arguments[0], name, value, len(sets[name]), size))
    elif command == "overlap":
        target, draft = arguments or ("target", "draft")
        value, count = overlap(load(target), load(draft))
        print("mean sum of min(p, q): %.4f over %d tokens" % (value, count))
    elif command == "prompts":
        write("prompts.json", prompts())
        write("repetitive.json", repetitive())


if __name__ == "__main__":
    main(*sys.argv[1:])
