#!/usr/bin/env python3
"""Published programs and the oracle against the reference: the same trees, rows and coins, the same tokens and paths.

    compare.py ASSAY [--oracle PLUGIN] [--requests N] [--at-least N] [--only PORT] [--show known]
    compare.py ASSAY [--oracle PLUGIN] --planted     one fault in each port, and each must be seen

With --oracle each request is also put to the oracle's rational numbers (oracle.c), which must agree without exception,
and there are rows for trees that no program takes, half of them with coins on the bounds. --planted then has a known-bad implementation for each of them.

Exit code 0 if all agree, and were --at-least so many requests in all. A request with a coin within 2^-20 of its bound is counted, and not compared; these must be
fewer than one in a thousand. Where a program and chapter 10 are known to differ (README.md), the port has a function
`amended` that undoes that alone. A difference is `known` if `amended` agrees with the reference."""

import argparse
import contextlib
import os
import sys
import time
import types

try:
    import numpy as np
except ImportError:
    sys.exit(77)  # skipped

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import drawn
from coin import Coins
from reference import Reference

EACH = 50  # trees of a panel


def neutral(tree, rng, module):
    pass


def thresholds(tree, rng, module):
    tree.parameter[:] = (1.0, 1.0) if rng.random() < 0.5 else [drawn.short(x) for x in rng.uniform(0.2, 1.0, 2)]


def constant(tree, rng, module):
    tree.parameter[:, 0] = drawn.short(rng.choice([0.02, 0.1, 0.3, 1.5]) * rng.uniform(0.5, 1.0))


def typical(tree, rng, module):
    epsilon, delta = rng.choice([0.09, 0.3, 0.9], 2)
    for node in range(len(tree.token)):
        tree.parameter[node, 0] = module.threshold(tree.p(node), epsilon, delta)


def lenience(tree, rng, module):
    tree.parameter[:, 0] = 1.0 if rng.random() < 0.5 else drawn.short(rng.uniform(0.2, 1.0))


def any_factors(tree, rng, module):
    for node in range(len(tree.token)):
        k = len(tree.children(node))
        tree.parameter[node, 0] = rng.choice([0, rng.integers(65536, k * 65536 + 1)]) if k else 0


def factors(tree, rng, module):
    for node in range(len(tree.token)):
        children = tree.children(node)
        if len(children) > 1:
            k = len(children)
            least = np.ceil(module.smallest_factor(tree.p(node), tree.q(children[0]), k) * 65536)
            tree.parameter[node, 0] = rng.choice([0, k * 65536, min(least, k * 65536)])


# Port: rule, its function, how children come, parameters, and what else trees are asked to be.
PORTS = {
    "specinfer": ("recursive", "step", ("iid", "iid", "mixed"), neutral, {}),
    "sequoia": ("recursive", "step", ("without",), neutral, {}),
    "sglang_target": ("target", "step", ("top", "without"), thresholds, {}),
    "sglang_target:constant": ("constant", "step_constant", ("top",), constant, {"repeats": False}),
    "sglang_greedy": ("greedy", "step", ("logits",), neutral, {}),
    "trtllm_match": ("match", "step", ("top", "without"), neutral, {}),
    "eagle2_onehot": ("onehot", "step", ("top", "without"), neutral, {}),
    "spectr": ("kseq", "step", ("iid",), factors, {}),
    "vllm_block": ("block", "step", ("iid",), neutral, {"chain": True}),
    "leviathan_single": ("single", "step", ("iid", "mixed"), neutral, {}),
    "lucidrains_lenient": ("lenient", "step", ("iid",), lenience, {"chain": True}),
    "medusa_typical": ("typical", "step", ("top", "without"), typical, {"even": None}),
}

# The same where no program is known, or none that takes such trees: the oracle alone answers.
ALONE = {
    "oracle:recursive": ("recursive", None, ("top", "logits", "without"), neutral, {}),
    "oracle:target": ("target", None, ("iid", "mixed", "logits"), thresholds, {}),
    "oracle:match": ("match", None, ("iid", "logits"), neutral, {}),
    "oracle:onehot": ("onehot", None, ("iid", "mixed", "logits"), neutral, {}),
    "oracle:kseq": ("kseq", None, ("top", "without", "mixed"), any_factors, {}),
    "oracle:single": ("single", None, ("top", "without"), neutral, {}),
    "oracle:block": ("block", None, ("top", "mixed"), neutral, {"chain": True}),
    "oracle:typical": ("typical", None, ("iid", "logits"), constant, {}),
    "oracle:constant": ("constant", None, ("iid", "logits"), constant, {}),
    "oracle:lenient": ("lenient", None, ("iid", "without", "mixed", "top"), lenience, {}),
    "oracle:greedy": ("greedy", None, ("iid", "logits"), neutral, {}),
}

# A known-bad implementation for each of them, in place of the reference.
FAULTY = {
    "oracle:recursive": "TREE_RESIDUAL_NOT_CHAINED",
    "oracle:target": "TREE_ALPHA_INVERTED",
    "oracle:match": "TREE_MATCH_FIRST_CHILD",
    "oracle:onehot": "TREE_ONEHOT_WHOLE_ROW",
    "oracle:kseq": "TREE_KSEQ_G_OF_ONE",
    "oracle:single": "TREE_SINGLE_WITHOUT_M",
    "oracle:block": "TREE_BLOCK_RESIDUAL_PLAIN",
    "oracle:typical": "TREE_TYPICAL_FIRST_PATH",
    "oracle:constant": "TREE_CONSTANT_BEST",
    "oracle:lenient": "TREE_LENIENT_RESIDUAL_WHOLE",
    "oracle:greedy": "TREE_GREEDY_AMONG_CHILDREN",
}

# One fault for each port: what stands there, and what is put in its place.
PLANTED = {
    "specinfer": ("            p = p / left\n        mass", "            p = tree.p(parent)\n        mass"),
    "sequoia": ("        logits[token] = np.finfo(np.float64).min\n", ""),
    "sglang_target": ("            draft[token] = p[token]\n", ""),
    "sglang_target:constant": ("p[token] >= single", "p[token] >= 2 * single"),
    "sglang_greedy": ("        node = taken\n", "        node = tree.children(node)[0]\n"),
    "trtllm_match": ("target(path[place - 1])", "target(path[0])"),
    "eagle2_onehot": ("            p = p / left if left > 0 else p\n", ""),
    "spectr": ("1 - (1 - beta) ** k\n            scale", "1 - (1 - beta) ** (k - 1)\n            scale"),
    "vllm_block": ("- log(draft[i][tree.token[node]])), 0.0)", "- log(draft[i][tree.token[node]])), 9.0)"),
    "leviathan_single": ("p[token] / (M * q[token])", "p[token] / q[token]"),
    "lucidrains_lenient": ("[token] * lenience", "[token] / lenience"),
    "medusa_typical": ("not p > bound", "not p > 2 * bound"),
}


def load(name, edit=None):
    """The module of a port, its text edited."""
    path = os.path.join(HERE, name.split(":")[0] + ".py")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if edit:
        if text.count(edit[0]) != 1:
            raise ValueError(f"{path} has the text of its fault {text.count(edit[0])} times")
        text = text.replace(*edit)
    module = types.ModuleType(name)
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def trees(rng, name, module, n):
    """n trees over one panel."""
    rule, _, hows, parameters, asked = {**PORTS, **ALONE}[name]
    panel, found = drawn.Panel(rng, even=name in ALONE and bool(rng.random() < 0.5)), []
    for _ in range(n):
        wish = dict(asked)
        if "even" in wish:
            wish["even"] = bool(rng.random() < 0.7)
        found.append(drawn.tree(rng, panel, str(rng.choice(hows)), **wish))
        parameters(found[-1], rng, module)
    return panel, found


def told(tree, ours, theirs):
    """A request and both answers, to be read by a person."""
    nodes = [f"  node {i}: token {tree.token[i]}, parent {tree.parent[i]}, p {tree.panel.p[tree.state[i]].tolist()}, "
             f"q {tree.panel.q[tree.q_state[i]].tolist() if tree.q_state[i] >= 0 else None}, u {tree.u[i]}, "
             f"parameter {tree.parameter[i].tolist()}" for i in range(len(tree.token))]
    return "\n".join([*nodes, f"  last {tree.last}", f"  reference {ours}", f"  the other {theirs}"])


WORDS = ("requests", "accepted", "refused", "near", "known", "different", "exact", "inexact")


class Comparison:
    """What was seen of one row: counts, and the smallest request of the kind that is to be shown."""

    def __init__(self, name, edit=None, show=None):
        self.rule, function, *_ = {**PORTS, **ALONE}[name]
        self.module = load(name, edit) if function else None
        self.verify = getattr(self.module, function) if function else None
        self.amended = getattr(self.module, function.replace("step", "amended"), None) if function else None
        self.seen, self.show, self.example = dict.fromkeys(WORDS, 0), show, None

    def count(self, word, tree, ours, theirs):
        self.seen[word] += 1
        if word == self.show and (self.example is None or size(tree) < size(self.example[0])):
            self.example = tree, ours, theirs

    def with_program(self, tree, ours):
        coins = Coins()
        theirs = self.verify(tree, coins)
        self.seen["accepted"] += len(theirs[1])
        self.seen["refused"] += coins.refused
        self.seen["near"] += coins.near
        if coins.near or agree(ours, theirs):
            return
        again = Coins()
        known = self.amended and agree(ours, self.amended(tree, again))
        self.count("known" if known else "near" if again.near else "different", tree, ours, theirs)

    def with_oracle(self, tree, ours, theirs):
        self.count("exact" if agree(ours, theirs) else "inexact", tree, ours, theirs)
        if not self.verify:
            self.seen["accepted"] += len(theirs[1])
            self.seen["refused"] += bool(tree.children(theirs[1][-1] if theirs[1] else 0))


def compare(reference, oracle, name, requests, edit=None, show=None):
    """Counts of what was seen on drawn requests."""
    row, rng = Comparison(name, edit, show), np.random.default_rng([18, *name.encode()])
    while row.seen["requests"] < requests:
        panel, asked = trees(rng, name, row.module, min(EACH, requests - row.seen["requests"]))
        workers = (reference, oracle) if oracle else (reference,)
        for worker in workers:
            worker.panel(panel.p, panel.q, panel.logits)
        for tree, ours, *exact in zip(asked, *(worker.verify(row.rule, asked) for worker in workers)):
            row.seen["requests"] += 1
            parents = [0, *ours[1]]
            if [tree.parent[node] for node in ours[1]] != parents[:-1] or tree.token[ours[1]].tolist() != ours[0][:-1]:
                raise RuntimeError(f"the reference's nodes are no path of its tokens:\n{told(tree, ours, ours)}")
            if row.verify:
                row.with_program(tree, ours)
            if oracle:
                row.with_oracle(tree, ours, *exact)
    if row.example:
        print(told(*row.example))
    return row.seen


def agree(ours, theirs):
    """The same tokens and nodes."""
    return ours[0] == theirs[0] and ours[1] == theirs[1]


def figures(seen):
    return ", ".join(f"{count} {word}" for word, count in seen.items())


def size(tree):
    return tree.panel.V * len(tree.token)


def is_right(name, seen, planted, oracle):
    if planted:
        return seen["different" if name in PORTS else "inexact"] > 0
    exact = seen["exact"] == (seen["requests"] if oracle else 0) and seen["inexact"] == 0
    seldom_near = seen["near"] * 1000 <= max(seen["requests"], 1000)
    return exact and seldom_near and seen["different"] == 0 and seen["accepted"] > 0 and seen["refused"] > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assay")
    parser.add_argument("--oracle", help="the plugin of oracle.c")
    parser.add_argument("--requests", type=int, default=300, help="of a row")
    parser.add_argument("--at-least", type=int, default=0, help="requests of all rows, fewer are wrong")
    parser.add_argument("--only", choices=(*PORTS, *ALONE))
    parser.add_argument("--show", choices=("known", "different", "inexact"), help="tell the smallest such request")
    parser.add_argument("--planted", action="store_true")
    asked = parser.parse_args()
    wrong, total = 0, dict.fromkeys(WORDS, 0)
    with contextlib.ExitStack() as stack:
        reference = stack.enter_context(Reference(asked.assay))
        oracle = stack.enter_context(Reference(asked.assay, f"plugin:{asked.oracle}")) if asked.oracle else None
        for name in [asked.only] if asked.only else (*PORTS, *(ALONE if oracle else ())):
            start, tested = time.process_time(), reference
            edit = PLANTED.get(name) if asked.planted else None
            if asked.planted and name in FAULTY:
                tested = stack.enter_context(Reference(asked.assay, f"mutant:{FAULTY[name]}"))
            seen = compare(tested, oracle, name, asked.requests, edit, asked.show)
            right = is_right(name, seen, asked.planted, oracle)
            wrong += not right
            for word in WORDS:
                total[word] += seen[word]
            print(f"{'ok' if right else 'WRONG'}: {name} ({ {**PORTS, **ALONE}[name][0]}): {figures(seen)}; "
                  f"{time.process_time() - start:.1f} s")
    enough = total["requests"] >= asked.at_least
    print(f"{'ok' if enough else 'WRONG'}: all: {figures(total)}")
    sys.exit(wrong > 0 or not enough)


main()
