#!/usr/bin/env python3
"""Published programs against the reference: the same trees, rows and coins, and the same tokens and paths.

    compare.py ASSAY [--requests N] [--only PORT] [--show known]
    compare.py ASSAY --planted       one fault in each port, and each must be seen

Exit code 0 if all agree. A request with a coin within 2^-20 of its bound is counted, and not compared; these must be
fewer than one in a thousand. Where a program and chapter 10 are known to differ (README.md), the port has a function
`amended` that undoes that alone. A difference is `known` if `amended` agrees with the reference."""

import argparse
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
    rule, _, hows, parameters, asked = PORTS[name]
    panel, found = drawn.Panel(rng), []
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
    return "\n".join([*nodes, f"  last {tree.last}", f"  reference {ours}", f"  program {theirs}"])


def compare(reference, name, requests, edit=None, show=None):
    """Counts of what was seen on drawn requests."""
    rule, function, *_ = PORTS[name]
    module, seen = load(name, edit), dict.fromkeys(("requests", "accepted", "refused", "near", "known", "different"), 0)
    rng, example = np.random.default_rng([18, *name.encode()]), None
    verify, amended = getattr(module, function), getattr(module, function.replace("step", "amended"), None)
    while seen["requests"] < requests:
        panel, asked = trees(rng, name, module, min(EACH, requests - seen["requests"]))
        reference.panel(panel.p, panel.q, panel.logits)
        for tree, ours in zip(asked, reference.verify(rule, asked)):
            coins = Coins()
            theirs = verify(tree, coins)
            seen["requests"] += 1
            parents = [0, *ours[1]]
            if [tree.parent[node] for node in ours[1]] != parents[:-1] or tree.token[ours[1]].tolist() != ours[0][:-1]:
                raise RuntimeError(f"the reference's nodes are no path of its tokens:\n{told(tree, ours, theirs)}")
            seen["accepted"] += len(theirs[1])
            seen["refused"] += coins.refused
            seen["near"] += coins.near
            if coins.near or agree(ours, theirs):
                continue
            again = Coins()
            word = "known" if amended and agree(ours, amended(tree, again)) else "near" if again.near else "different"
            seen[word] += 1
            if word == show and (example is None or size(tree) < size(example[0])):
                example = tree, ours, theirs
    if example:
        print(told(*example))
    return seen


def agree(ours, theirs):
    """The same tokens and nodes."""
    return ours[0] == theirs[0] and ours[1] == theirs[1]


def size(tree):
    return tree.panel.V * len(tree.token)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assay")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--only", choices=PORTS)
    parser.add_argument("--show", choices=("known", "different"), help="tell the smallest such request")
    parser.add_argument("--planted", action="store_true")
    asked = parser.parse_args()
    wrong = 0
    with Reference(asked.assay) as reference:
        for name in [asked.only] if asked.only else PORTS:
            start = time.process_time()
            edit = PLANTED[name] if asked.planted else None
            seen = compare(reference, name, asked.requests, edit, asked.show)
            right = seen["different"] > 0 if edit else seen["different"] == 0 and seen["accepted"] and seen["refused"]
            right = right and (edit or seen["near"] * 1000 <= max(seen["requests"], 1000))
            wrong += not right
            figures = ", ".join(f"{count} {word}" for word, count in seen.items())
            print(f"{'ok' if right else 'WRONG'}: {name} ({PORTS[name][0]}): {figures}; "
                  f"{time.process_time() - start:.1f} s")
    sys.exit(wrong > 0)


main()
