"""Runs the code of the Ouroboros paper's authors, and holds each round against the oracle's (`ci/audit-ouroboros`).

    python ouroboros_published.py ROUNDS_PROGRAM [--requests N] [--first N]

The folder `ouroboros` of thunlp/Ouroboros is on PYTHONPATH. All of it runs as published, loops, caches, pool and
attention masks, but one decoder layer, which stands for the network: a row's answer is a hash of the tokens that its
mask and the positions show it. ouroboros_rounds.c has the same hash. Exit code 0: no difference but those that
docs/audits/ouroboros.md explains; 1: another, or a control without one. A control is the oracle with another value of
one switch of chapter 11: its rounds must differ.
"""
import argparse
import collections
import json
import random
import subprocess
import sys
import types

import torch
from transformers import LlamaConfig

from ouroboros.cache_engine import CacheEngine
from ouroboros.models import LlamaForCausalLM

published = sys.modules["ouroboros.ouroboros"]  # the package has a function of that name

WORD, PARTS, MOST = (1 << 64) - 1, 8, 16  # MOST: tokens of the models' embedding

# ---- Models --------------------------------------------------------------------------


class Hashed:
    """The next token of a context; the tokens carry their positions."""

    def __init__(self, V, order, surprise, differ, seed, own):
        self.V, self.order, self.surprise, self.differ, self.seed, self.own = V, order, surprise, differ, seed, own

    @staticmethod
    def hash(h, path):
        first = path[0][0]
        for position, token in path:
            h = ((h ^ ((position - first) * 4096 + token + 1)) * 0x9E3779B97F4A7C15) & WORD
            h ^= h >> 29
        return h >> 8

    def __call__(self, path):
        own, whole = self.hash(self.own, path), self.hash(self.seed, path)
        if own % PARTS < self.differ:
            return own // PARTS % self.V
        if whole % PARTS < self.surprise:
            return whole // PARTS % self.V
        return self.hash(self.seed, path[-self.order:]) % self.V


class Layer(torch.nn.Module):
    """In place of a decoder layer: the cache has tokens as keys and positions as values."""

    malformed = 0  # rows whose context has a gap, or a position twice

    def __init__(self, model):
        super().__init__()
        self.next, self.self_attn = model, types.SimpleNamespace()

    def forward(self, hidden_states, attention_mask=None, position_ids=None, past_key_value=None, **_):
        keys = hidden_states[0].argmax(-1).reshape(1, 1, -1, 1)
        values = position_ids.reshape(1, 1, -1, 1)
        if past_key_value is not None:
            keys = torch.cat([past_key_value[0], keys], dim=2)
            values = torch.cat([past_key_value[1], values], dim=2)
        token, position = keys.flatten().tolist(), values.flatten().tolist()
        answers = torch.zeros_like(hidden_states)
        for row, mask in enumerate((attention_mask[0, 0] > -1).tolist()):
            path = sorted((position[i], token[i]) for i, seen in enumerate(mask) if seen)
            Layer.malformed += not path or [place for place, _ in path] != list(range(len(path)))
            answers[0, row, self.next(path) if path else 0] = 1
        return answers, (keys, values)


def model_of(function, eos):
    config = LlamaConfig(vocab_size=MOST, hidden_size=MOST, intermediate_size=1, num_hidden_layers=1,
                         num_attention_heads=1)
    model = LlamaForCausalLM(config).eval()
    model.generation_config.eos_token_id = eos if eos >= 0 else None
    model.generation_config.pad_token_id = None
    model.model.embed_tokens = torch.nn.Embedding.from_pretrained(torch.eye(MOST))
    model.model.layers = torch.nn.ModuleList([Layer(function)])
    model.model.norm = model.lm_head = torch.nn.Identity()
    return model


# ---- Their rounds --------------------------------------------------------------------


class Spied(published.KVCacheModelLade):
    """Notes what passes between the loop and the draft model."""

    rounds = []

    def generate(self, prefix, pool, gamma):
        if Spied.rounds:
            Spied.rounds[-1].update(after=prefix[0].tolist(), pool=pool_of(pool))
        drafted, length, suffixes = super().generate(prefix, pool, gamma)
        Spied.rounds.append({
            "before": prefix[0].tolist(), "drafts": drafted[0].tolist()[prefix.shape[1]:],
            "suffixes": [list(s) for s in suffixes],
            "window": [list(level) for level in self.ctx["past_tokens"] if level is not None]})
        return drafted, length, suffixes


published.KVCacheModelLade = Spied


def pool_of(engine):
    return {str(key): [list(value) for value in values] for key, values in engine.token_map.items() if values}


def theirs(request, pool):
    """Rounds, and the whole output."""
    Spied.rounds = []
    target, draft = (model_of(request[name], request["eos"]) for name in ("target", "draft"))
    out = published.ouroboros(
        torch.tensor([request["prompt"]]), draft, target, ngram_cache=pool, max_len=request["budget"],
        gamma=request["gamma"], window_size=request["W"], guess_set_size=request["W"],
        lookahead_level=request["N"], eos_token_id=request["eos"], topk=request["K"])[0].tolist()
    Spied.rounds[-1].update(after=None, pool=pool_of(pool))
    return Spied.rounds, out[len(request["prompt"]):]


# ---- The oracle's rounds -------------------------------------------------------------


class Oracle:
    def __init__(self, program, switches):
        self.process = subprocess.Popen([program] + switches, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, r, pool):
        draft = r["draft"]
        budget = r["budget"] + r["gamma"] + r["N"]  # so that theirs ends first: the budget is no subject here
        entries = [[int(key), *value] for key, values in pool.items() for value in values]
        line = [draft.V, draft.order, draft.surprise, draft.differ, draft.seed, draft.own, r["gamma"],
                r["W"], r["N"], r["K"], budget, r["eos"], len(r["prompt"]), *r["prompt"], len(r["given"]), *r["given"],
                len(entries), *sum(entries, [])]
        print(*line, file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        if answer["error"]:
            sys.exit(f"the oracle refuses a request: {answer['error']}")
        return answer["rounds"]


# ---- Requests ------------------------------------------------------------------------


def window_tokens(prompt, n):
    """The first tokens of their window: drawn from the prompt by Python's generator, seeded with 10 in each call."""
    drawn = random.Random(10)
    return [drawn.choice(prompt) for _ in range(n)]


def requests(number):
    """Three requests to a pair of models; they have the sizes and the pool in common."""
    draw = random.Random(number)
    V, order, surprise, differ = draw.randint(2, 12), draw.randint(1, 2), draw.randint(0, 2), draw.randint(0, 4)
    seeds = draw.randrange(1 << 31), draw.randrange(1 << 31)
    sizes = {"gamma": draw.randint(1, 12), "W": draw.randint(1, 6), "N": draw.randint(3, 9), "K": draw.randint(1, 4)}
    ends = draw.randrange(3) == 0
    for _ in range(3):
        prompt = [draw.randrange(V) for _ in range(draw.randint(1, 10))]
        yield {"target": Hashed(V, order, surprise, 0, seeds[0], 0),
               "draft": Hashed(V, order, surprise, differ, *seeds), **sizes,
               "prompt": prompt, "given": window_tokens(prompt, sizes["W"] + sizes["N"] - 3),
               "budget": draw.randint(1, 40), "eos": draw.randrange(V) if ends else -1}


# ---- What is known to differ ---------------------------------------------------------


def plain(r):
    """Plain greedy decoding of the target, to the end of sequence or of the budget."""
    path = list(enumerate(r["prompt"]))
    while len(path) < len(r["prompt"]) + r["budget"]:
        path.append((len(path), r["target"](path)))
        if path[-1][1] == r["eos"]:
            break
    return [token for _, token in path[len(r["prompt"]):]]


def misplaced_end(r, rounds):
    """Output with the end of sequence where docs/errata.md says that theirs is put; rounds: the oracle's, all."""
    history = list(r["prompt"])
    for number, one in enumerate(rounds):
        history += one["emitted"] if number + 1 < len(rounds) else []
    one, eos, length = rounds[-1], r["eos"], r["N"] - 1
    n, run = len(one["drafts"]), one["run"]
    first = len(history) + n  # behind the drafts
    end = first if one["drafts"][-1:] == [eos] and one["accepted"] >= n else None
    if one["accepted"] < n:
        end = len(history) + len(run) if run[-1] == eos else end
    else:
        hits = len(run) - n - 1  # tokens of the winner that were right, the last one not counted
        best = [i for i, s in enumerate(one["suffixes"]) if s[:hits] == run[n:n + hits]][:1] if hits else []
        tail = run[n:]
        if best and eos in tail:
            end = first + best[0] * length + len(tail) - 1 - tail[::-1].index(eos) + 1
        if not best and run[n] == eos:
            end = first - length + first + 1 + 1
    text = (history + run)[:end] if end is not None else history + run
    return text[:len(r["prompt"]) + r["budget"]][len(r["prompt"]):]


# ---- Comparison ----------------------------------------------------------------------


CONTROLS = ["draft_bonus=yes", "overrun=yes", "suffix_bonus=yes", "inspire=phrase", "inspire=none", "refine=value",
            "refine=none", "refine_refused=all"]


def difference(oracle_rounds, their_rounds):
    """The first one, in words; None: the rounds are alike."""
    if len(oracle_rounds) < len(their_rounds):
        return f"the authors' code has {len(their_rounds)} rounds, Assay {len(oracle_rounds)}"
    for number, (due, has) in enumerate(zip(oracle_rounds, their_rounds)):
        pairs = {name: (due[name], has[name]) for name in ("drafts", "suffixes", "window", "pool")}
        if has["after"] is not None:  # the last round's tokens are in the output
            pairs["tokens"] = (due["emitted"], has["after"][len(has["before"]):])
        for what, (mine, other) in pairs.items():
            if mine != other:
                return f"round {number}, {what}: the authors' code has {other}, Assay {mine}"
    return None


def count(r, rounds, tally):
    for one in rounds:
        n = len(one["drafts"])
        tally["rounds"] += 1
        tally["rounds with suffixes"] += bool(one["suffixes"])
        tally["rounds with a refused draft"] += one["accepted"] < n
        tally["rounds with tokens of a suffix accepted"] += one["accepted"] > n
        tally["rounds with a whole suffix accepted"] += one["accepted"] == n + r["N"] - 1
        tally["rounds that inspire"] += bool(one["inspired"])


def compare(number, r, due, their_rounds, output, tally):
    tally["requests"] += 1
    wrong, rounds = difference(due, their_rounds), due[:len(their_rounds)]
    count(r, rounds, tally)
    if wrong is None and output != plain(r):
        tally["outputs that are not plain decoding's"] += 1
        if r["eos"] >= 0 and output == misplaced_end(r, rounds):
            tally["outputs that the misplaced end explains"] += 1
        else:
            wrong = f"output: the authors' code has {output}, plain decoding {plain(r)}"
    if wrong is not None:
        tally["requests that differ"] += 1
        print(f"request {number}: {wrong}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program", help="ouroboros_rounds, built")
    options.add_argument("--requests", type=int, default=300, help="pairs of models, of three requests each")
    options.add_argument("--first", type=int, default=0, help="number of the first pair")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    tally, seen = collections.Counter({"requests that differ": 0}), collections.Counter()
    oracle, controls = Oracle(chosen.program, []), {name: Oracle(chosen.program, [name]) for name in CONTROLS}
    for number in range(chosen.first, chosen.first + chosen.requests):
        pool = None
        for r in requests(number):
            pool = pool or CacheEngine(r["N"], r["W"])
            before = pool_of(pool)
            their_rounds, output = theirs(r, pool)
            compare(number, r, oracle(r, before), their_rounds, output, tally)
            for name, control in controls.items():
                seen[name] += difference(control(r, before), their_rounds) is not None
    tally["rows whose context is no text"] = Layer.malformed
    for what, times in tally.items():
        print(f"{times:8} {what}")
    for name in CONTROLS:
        print(f"{seen[name]:8} requests that differ with {name}, a control")
    return tally["rounds"] == 0 or tally["requests that differ"] > 0 or any(seen[name] == 0 for name in CONTROLS)


if __name__ == "__main__":
    sys.exit(main())
