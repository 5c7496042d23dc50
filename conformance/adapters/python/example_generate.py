#!/usr/bin/env python3
"""A whole engine behind `generate`, to copy: speculative decoding of a Llama model with a draft model, each
with its key-value cache, or by prompt lookup without one. Small, but nothing in it is a toy: weights, forward,
caches, rollback, sampling and stopping are real. Standard library and NumPy.

    assay run --only 'engine.*' --level smoke --iut exec:"python3 example_generate.py"

Its arithmetic is binary32 as NumPy's matrix products do it, whose sums change with the number of rows. So
it does not promise `greedy_identical`: where two logits are as good as equal, drafts may change a token.
"""

import json
import os
import random
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # products this small take longer on several
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut


def read_weights(folder):
    """Every tensor of a folder's safetensors, one file or sharded, widened to binary32."""
    index = os.path.join(folder, "model.safetensors.index.json")
    names = {"model.safetensors"}
    if os.path.exists(index):
        with open(index, encoding="utf-8") as f:
            names = set(json.load(f)["weight_map"].values())
    weights = {}
    for name in names:
        data = np.memmap(os.path.join(folder, name), np.uint8, "r")
        begin = 8 + int(data[:8].view("<u8")[0])
        header = json.loads(data[8:begin].tobytes())
        header.pop("__metadata__", None)
        for tensor, about in header.items():
            first, end = about["data_offsets"]
            raw = data[begin + first : begin + end].tobytes()
            if about["dtype"] == "I64":  # d2t
                weights[tensor] = np.frombuffer(raw, "<i8")
                continue
            if about["dtype"] == "BF16":
                flat = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
            else:
                flat = np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[about["dtype"]]).astype(np.float32)
            weights[tensor] = flat.reshape(about["shape"])
    return weights


class Llama:
    """A model and the cache of one sequence, which holds keys and values of its first `held` tokens."""

    def __init__(self, folder):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            c = json.load(f)
        if c["architectures"] != ["LlamaForCausalLM"] or c.get("rope_scaling") or c.get("attention_bias"):
            raise assay_iut.Unsupported(f"{folder}: a Llama model without scaling or biases is needed")
        w = read_weights(folder)
        self.folder, self.V, self.eps = folder, c["vocab_size"], np.float32(c["rms_norm_eps"])
        self.heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        self.head_dim = c.get("head_dim") or c["hidden_size"] // self.heads
        self.embedding, self.norm = w["model.embed_tokens.weight"], w["model.norm.weight"]
        self.output = self.embedding if c.get("tie_word_embeddings") else w["lm_head.weight"]
        self.d2t = w.get("d2t")
        self.layers = [self.layer(w, f"model.layers.{i}.") for i in range(c["num_hidden_layers"])]
        self.frequency = c["rope_theta"] ** (-np.arange(0, self.head_dim, 2) / self.head_dim)
        self.cache = np.zeros((2, len(self.layers), self.kv_heads, 64, self.head_dim), np.float32)
        self.held = 0

    @staticmethod
    def layer(w, at):
        qkv, o, gate_up, down = (
            np.concatenate([w[f"{at}{part}_proj.weight"] for part in parts]).T
            for parts in (["self_attn.q", "self_attn.k", "self_attn.v"], ["self_attn.o"],
                          ["mlp.gate", "mlp.up"], ["mlp.down"]))
        norms = w[at + "input_layernorm.weight"], w[at + "post_attention_layernorm.weight"]
        return norms[0], qkv, o, norms[1], gate_up, down

    def rms(self, x, weight):
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + self.eps) * weight

    def rotate(self, x, cos, sin):
        a, b = np.split(x, 2, -1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def logits(self, tokens, rows):
        """The last `rows` rows of logits over `tokens`, which differ from those of the last call at the
        wanted rows only: a rejected draft stands where its correction comes, or behind it, and is written
        over. The rest the cache has."""
        have = min(self.held, len(tokens) - rows)
        n, fresh = len(tokens), len(tokens) - have
        while n > self.cache.shape[3]:
            self.cache = np.concatenate([self.cache, np.zeros_like(self.cache)], 3)
        angle = np.outer(np.arange(have, n), self.frequency)
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        future = np.where(np.arange(n) > np.arange(have, n)[:, None], np.float32(-np.inf), np.float32(0))
        group, q = self.heads // self.kv_heads, self.heads * self.head_dim
        x = self.embedding[tokens[have:]]
        for i, (norm, qkv, o, mlp_norm, gate_up, down) in enumerate(self.layers):
            heads = (self.rms(x, norm) @ qkv).reshape(fresh, -1, self.head_dim).transpose(1, 0, 2)
            query = self.rotate(heads[: self.heads], cos, sin)
            self.cache[0, i, :, have:n] = self.rotate(heads[self.heads : -self.kv_heads], cos, sin)
            self.cache[1, i, :, have:n] = heads[-self.kv_heads :]
            keys, values = self.cache[:, i, :, None, :n]  # [kv_heads, 1, n, head_dim]
            query = query.reshape(self.kv_heads, group, fresh, self.head_dim)
            score = query @ keys.swapaxes(-1, -2) / np.float32(self.head_dim**0.5) + future
            weight = np.exp(score - score.max(-1, keepdims=True))
            mixed = weight / weight.sum(-1, keepdims=True) @ values
            x = x + mixed.reshape(self.heads, fresh, self.head_dim).transpose(1, 0, 2).reshape(fresh, q) @ o
            gate, up = np.split(self.rms(x, mlp_norm) @ gate_up, 2, -1)
            x = x + gate / (1 + np.exp(-gate)) * up @ down
        self.held = n
        return self.rms(x[-rows:], self.norm) @ self.output.T


class Draft(Llama):
    """A draft model. It may have a vocabulary of its own: own id i is the target's id i + d2t[i], and what it
    lacks has the logit -inf, so that q is 0 there."""

    def logits(self, tokens, rows):
        own = super().logits(tokens, rows)
        if self.d2t is None:
            return own
        row = np.full((rows, self.V), -np.inf, np.float32)
        row[:, np.arange(len(self.d2t)) + self.d2t] = own
        return row


def served(logits, s):
    """One row as it is sampled from: temperature, top-k, top-p, min-p; at temperature 0 its argmax alone."""
    if s.temperature == 0:
        return (np.arange(len(logits)) == logits.argmax()).astype(np.float64)
    e = np.exp((logits - logits.max()).astype(np.float64) / s.temperature)
    rank = np.argsort(-logits, kind="stable")
    if s.top_k > 0:
        e[rank[s.top_k :]] = 0
    if s.top_p < 1:
        e[rank[1 + np.searchsorted(np.cumsum(e[rank]), s.top_p * e.sum()) :]] = 0
    e[e < s.min_p] = 0
    return e / e.sum()


def draw(weights, u):
    sums = np.cumsum(weights)
    return int(np.searchsorted(sums, u * sums[-1], side="right"))


def by_model(draft):
    """Drafts from a model: the tokens, and the rows that they were drawn from."""
    def propose(tokens, most, s, uniform):
        drafts, q = [], []
        for _ in range(most):
            q.append(served(draft.logits(tokens + drafts, 1)[0], s))
            drafts.append(draw(q[-1], uniform()))
        return drafts, q
    return propose


def by_lookup(longest, drafts, V):
    """Drafts from the text: what followed the last occurrence of its longest ending that came before, each
    proposed with certainty."""
    def propose(tokens, most, s, uniform):
        for n in range(min(longest, len(tokens) - 1), 0, -1):
            for at in range(len(tokens) - n - 1, -1, -1):
                if tokens[at : at + n] == tokens[-n:]:
                    found = tokens[at + n :][: min(drafts, most)]
                    sure = np.zeros((len(found), V))
                    sure[np.arange(len(found)), found] = 1
                    return found, sure
        return [], []
    return propose


def step(target, propose, tokens, most, s, uniform):
    """The tokens of one step: accepted drafts and one more."""
    drafts, q = propose(tokens, most, s, uniform)
    p = [served(row, s) for row in target.logits(tokens + drafts, len(drafts) + 1)]
    for i, token in enumerate(drafts):
        if not uniform() * q[i][token] < p[i][token]:
            residual = np.maximum(p[i] - q[i], 0)
            return [*drafts[:i], draw(residual if residual.any() else p[i], uniform())]
    return [*drafts, draw(p[-1], uniform())]


class Penalised:
    """A model whose rows are penalised, each by the tokens before it: repetition is of prompt and output, presence and
    frequency are of the output."""

    def __init__(self, model, penalties, prompt):
        if not (np.isfinite(penalties).all() and penalties.repetition > 0):
            raise assay_iut.BadInput(f"{penalties}: they have to be finite, and that of repetition above 0")
        self.model, self.penalties, self.prompt, self.V = model, penalties, len(prompt), model.V

    def logits(self, tokens, rows):
        first = len(tokens) - rows + 1
        return [self.row(row, tokens[: first + i]) for i, row in enumerate(self.model.logits(tokens, rows))]

    def row(self, logits, tokens):
        p, count = self.penalties, np.bincount(np.array(tokens[self.prompt :], int), minlength=self.V)
        again = np.bincount(tokens, minlength=self.V) > 0
        logits = np.where(again, np.where(logits > 0, logits / p.repetition, logits * p.repetition), logits)
        return logits - p.presence * (count > 0) - p.frequency * count


def penalised(model, penalties, prompt):
    return model if penalties == (1, 0, 0) else Penalised(model, penalties, prompt)


class Engine:
    def __init__(self):
        self.models = {}  # the target and the draft model of the last call

    def model(self, role, folder):
        if role not in self.models or self.models[role].folder != folder:
            try:
                self.models[role] = (Draft if role == "draft" else Llama)(folder)
            except OSError as error:
                raise assay_iut.BadInput(f"no model in {folder}: {error}")
        self.models[role].held = 0  # every request from an empty cache
        return self.models[role]

    def generate(self, target, draft, prompts, gamma, k, eos, sampling, seeds, processors):
        if gamma > 0 and draft is None:
            raise assay_iut.BadInput(f"{gamma} drafts a step, but no draft model")
        return [self.one(penalised(self.model("target", target), penalties, prompt),
                         by_model(penalised(self.model("draft", draft), penalties, prompt) if gamma > 0 else None),
                         gamma, prompt, k, eos, sampling, seed)
                for prompt, seed, penalties in zip(prompts, seeds, processors)]

    def generate_by(self, method, sizes, target, prompts, k, eos, sampling, seeds, processors):
        longest, drafts = sizes  # method is "lookup", the one that is claimed
        answers = []
        for prompt, seed, penalties in zip(prompts, seeds, processors):
            model = penalised(self.model("target", target), penalties, prompt)
            answers.append(self.one(model, by_lookup(longest, drafts, model.V), drafts, prompt, k, eos, sampling,
                                    seed))
        return answers

    ### Your engine: one request.
    def one(self, target, propose, most, prompt, k, eos, sampling, seed):
        if not ((0 <= prompt) & (prompt < target.V)).all():
            raise assay_iut.BadInput(f"a token of the prompt is not in 0..{target.V - 1}")
        prompt, out, accepted = prompt.tolist(), [], []
        uniform = random.Random(seed).random
        while len(out) < k and eos not in out:
            run = step(target, propose, prompt + out, min(most, k - len(out) - 1), sampling, uniform)
            run = run[: run.index(eos) + 1] if eos in run else run
            out += run
            accepted.append(len(run) - 1)
        return out, accepted


if __name__ == "__main__":
    assay_iut.serve(Engine(), name="example_generate.py", version="1", uniforms="own", uniform_bits=53,
                    rule="token", arithmetic="f32", lm_architectures="llama", methods="lookup",
                    processors="repetition presence frequency", draft_vocab="folder")
