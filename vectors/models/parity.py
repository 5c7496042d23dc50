"""Compares Assay's logits with those of transformers (FP32, CPU): the pair of this folder on 20 prompts and
one long text, and the random checkpoints of checkpoints.py on drawn tokens.

    python parity.py ASSAY CHECKPOINTS [--only NAME] [--json FILE]     (see ci/parity-transformers)

Two correct implementations in binary32 differ, so each is also measured against the model in binary64:

    theirs    max |transformers - binary64|, binary64 with the rotary frequencies that transformers computed
    ours      max |assay - binary64|, binary64 with the correctly rounded frequencies of ARI-10 and ARI-11
    tables    max |binary64 - binary64| between the two: what the frequencies alone make of it
    between   max and mean |assay - transformers|

In binary64 the angle is still the binary32 product of position and frequency: both sides define it so.
A line fails when ours exceeds BOUND times the largest logit; `refused-*` fail unless assay refuses them.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from decimal import Decimal, getcontext

import numpy as np
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from text import BOS, split

HERE = os.path.dirname(os.path.abspath(__file__))
BOUND = 1e-5


# --- the three models -----------------------------------------------------------------------------------

def load(folder, dtype):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(dtype).eval()


def frequencies(config):
    """ARI-10, ARI-11: the rotary frequencies, correctly rounded, then Llama-3 scaling in binary32."""
    getcontext().prec = 60
    rope, f32 = config.rope_parameters, np.float32
    d = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    theta = Decimal(float(rope["rope_theta"]))
    found = [f32(float(theta ** (Decimal(-2 * i) / Decimal(d)))) for i in range(d // 2)]
    if rope["rope_type"] == "llama3":
        factor, low, high, context = (f32(rope[key]) for key in (
            "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"))
        for i, f in enumerate(found):
            wave = f32(2 * np.pi) / f
            if wave > context / low:
                found[i] = f / factor
            elif not wave < context / high:
                s = (context / wave - low) / (high - low)
                found[i] = ((f32(1) - s) * f) / factor + s * f
    return torch.tensor(np.array(found, f32))


def binary64(folder, frequency=None):
    """The transformers model in binary64. Its norms and its rotary embedding compute in binary32 whatever
    the type of the weights, so these two are replaced. frequency None: the ones transformers computed."""
    own = load(folder, torch.float32).model.rotary_emb.inv_freq
    frequency = own if frequency is None else frequency
    model = load(folder, torch.float64)

    def rotary(x, position_ids, **_):
        angle = (position_ids[..., None].float() * frequency).double()
        angle = torch.cat([angle, angle], -1)
        return angle.cos(), angle.sin()

    def norm(module):
        eps = module.variance_epsilon
        return lambda x: module.weight * (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps))

    model.model.rotary_emb.forward = rotary
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = norm(module)
    return model


def sources(folder, lists):
    """[(part, max and mean |transformers - binary64| with this part computed in binary64 and rounded
    once)]: which part of transformers' arithmetic its difference comes from."""
    def products(model):
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.forward = lambda x, w=module.weight: F.linear(x.double(), w.double()).float()

    def attention(model):
        def exact(q, k, v, **options):
            return plain(q.double(), k.double(), v.double(), **options).float()
        F.scaled_dot_product_attention = exact

    def norms(model):
        for module in model.modules():
            if type(module).__name__.endswith("RMSNorm"):
                module.forward = lambda x, m=module: (m.weight.double() * x.double() * torch.rsqrt(
                    (x.double() ** 2).mean(-1, keepdim=True) + m.variance_epsilon)).float()

    def silu(model):
        for layer in model.model.layers:
            layer.mlp.act_fn.forward = lambda x: F.silu(x.double()).float()

    def everything(model):
        for part in (products, attention, norms, silu):
            part(model)

    plain, exact, found = F.scaled_dot_product_attention, binary64(folder), []
    wanted = [logits(exact, tokens) for tokens in lists]
    for part in (None, products, attention, norms, silu, everything):
        model = load(folder, torch.float32)
        if part:
            part(model)
        off = [np.abs(logits(model, tokens) - w).ravel() for tokens, w in zip(lists, wanted)]
        F.scaled_dot_product_attention = plain
        found.append((part.__name__ if part else "nothing", np.concatenate(off).max(), np.concatenate(off).mean()))
    return found


@torch.no_grad()
def logits(model, tokens):
    return model(torch.tensor([tokens]), use_cache=False).logits[0].double().numpy()


def assay_logits(assay, folder, tokens, vocabulary):
    with tempfile.TemporaryDirectory() as at:
        source, result = os.path.join(at, "tokens"), os.path.join(at, "logits")
        with open(source, "w") as f:
            f.write(" ".join(map(str, tokens)) + "\n")
        subprocess.run([assay, "logits", "--model", folder, "--tokens", source, "--output", result],
                       check=True)
        return np.fromfile(result, "<f4").reshape(len(tokens), vocabulary).astype(np.float64)


# --- the comparison -------------------------------------------------------------------------------------

def drawn(vocabulary):
    """Token lists that end before, in and behind the second chunk of 64 positions and of 128 summands."""
    draw = np.random.RandomState(2025)
    return [draw.randint(0, vocabulary, n).tolist() for n in (5, 64, 65, 200)]


def written():
    """Every tenth prompt, and the first 1023 bytes of a held-out chapter."""
    with open(os.path.join(HERE, "prompts.json")) as f:
        texts = [prompt.encode() for prompt in json.load(f)[::10]]
    texts.append(next(text for _, text in split()["heldout"] if len(text) > 1023)[:1023])
    return [[BOS, *text] for text in texts]


def compare(assay, folder, lists):
    """The figures of one checkpoint."""
    fp32 = load(folder, torch.float32)
    config = fp32.config
    theirs64, ours64 = binary64(folder), binary64(folder, frequencies(config))
    seen = dict(tokens=0, largest=0.0, theirs=0.0, ours=0.0, tables=0.0, between=0.0, mean=0.0, argmax=0)
    for tokens in lists:
        t, t64, a64 = logits(fp32, tokens), logits(theirs64, tokens), logits(ours64, tokens)
        a = assay_logits(assay, folder, tokens, config.vocab_size)
        for key, value in (("largest", t64), ("theirs", t - t64), ("ours", a - a64), ("tables", t64 - a64),
                           ("between", a - t)):
            seen[key] = max(seen[key], float(np.nan_to_num(np.abs(value), nan=np.inf).max()))
        seen["tokens"] += len(tokens)
        seen["mean"] += float(np.abs(a - t).sum()) / config.vocab_size
        seen["argmax"] += int((a.argmax(1) == t.argmax(1)).sum())
    seen["mean"] /= seen["tokens"]
    seen["pass"] = seen["ours"] <= BOUND * seen["largest"]
    return seen


def refused(assay, folder):
    """(refused?, what assay said)"""
    with tempfile.TemporaryDirectory() as at:
        tokens = os.path.join(at, "tokens")
        with open(tokens, "w") as f:
            f.write("1 2 3\n")
        done = subprocess.run([assay, "logits", "--model", folder, "--tokens", tokens, "--output",
                               os.path.join(at, "logits")], capture_output=True, text=True)
        return 0 < done.returncode < 126 and done.stderr.strip() != "", done.stderr.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assay")
    parser.add_argument("checkpoints")
    parser.add_argument("--only")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)  # small models; on a busy machine a second thread costs more than it gives
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    folders = [(name, os.path.join(HERE, name)) for name in ("target", "draft")]
    folders += [(name, os.path.join(options.checkpoints, name))
                for name in sorted(os.listdir(options.checkpoints))]
    results, failed = {}, []
    print("%-24s %6s %8s %9s %9s %9s %9s %9s %s" % (
        "checkpoint", "tokens", "largest", "theirs", "ours", "tables", "between", "mean", "same argmax"))
    for name, folder in folders:
        if options.only not in (None, name):
            continue
        if name.startswith("refused-"):
            passed, said = refused(options.assay, folder)
            results[name] = {"pass": passed, "said": said.replace(folder, name)}
            print("%-24s %s" % (name, results[name]["said"] if passed else "NOT REFUSED"))
        else:
            with open(os.path.join(folder, "config.json")) as f:
                vocabulary = json.load(f)["vocab_size"]
            lists = written() if name in ("target", "draft") else drawn(vocabulary)
            r = results[name] = compare(options.assay, folder, lists)
            print("%-24s %6d %8.2f %9.2e %9.2e %9.2e %9.2e %9.2e %d%s" % (
                name, r["tokens"], r["largest"], r["theirs"], r["ours"], r["tables"], r["between"], r["mean"],
                r["argmax"], "" if r["pass"] else "  FAIL"))
        failed += [] if results[name]["pass"] else [name]
    if options.only in (None, "target"):
        print("transformers, target: max and mean difference from binary64 with one part in binary64")
        for part, worst, mean in sources(folders[0][1], written()):
            print("    %-12s %9.2e %9.2e" % (part, worst, mean))
    if options.json:
        with open(options.json, "w") as f:
            json.dump(results, f, indent=2)
    print("%d checkpoints, %d failed: %s" % (len(results), len(failed), ", ".join(failed) or "none"))
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
