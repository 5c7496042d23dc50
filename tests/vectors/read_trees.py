#!/usr/bin/env python3
"""tree.json read with Python's standard library alone, from vectors/README.md and the clauses of spec/. Rows are
expanded, and the answers of the rules that need few lines are recomputed in integers. So the file needs nothing else of
this repository.

usage: read_trees.py VECTORS [--self-test]
"""
import functools
import json
import os
import struct
import sys
from fractions import Fraction

RULES = ("match", "greedy", "target", "constant", "onehot", "single", "recursive")


# ---- Rows -----------------------------------------------------------------------------------------------------------

def philox(counter, key):
    """RNG-01: Philox4x32-10."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


@functools.lru_cache(None)
def zipf(seed, row, V, k, sharp):
    """PAN-01; also the order of the ranks, and the id that gets what is missing."""
    key = (seed & 0xFFFFFFFF, seed >> 32)
    words = [philox((t, row, 16, 0), key)[:2] for t in range(V)]
    order = sorted(range(V), key=lambda t: (words[t][0], t))
    w = [0] * V
    for rank, t in enumerate(order):
        w[t] = (1 << 40) // (rank + 1) * (65536 + words[t][1] % 65536) // 65536
    for _ in range(sharp):
        most = max(w)
        w = [x * x // most for x in w]
    top, total = w.index(max(w)), sum(w)
    n = [(x << k) // total for x in w]
    n[top] += (1 << k) - sum(n)
    return n, order, top


def mix(seed, row, V, k, sharp, weight):
    """PAN-02."""
    n, order, top = zipf(seed, row, V, k, sharp)
    other = [0] * V
    for rank, t in enumerate(order):
        other[t] = n[order[V - 1 - rank]]
    m = [(weight * a + (65536 - weight) * b) // 65536 for a, b in zip(n, other)]
    m[top] += (1 << k) - sum(m)
    return m


def row_of(o, V):
    """The entries of a row in units of 2^-44, of which all rows of tree.json are multiples: DIST-07 is exact."""
    if o["form"] == "units":
        n = o["n"]
    elif o["form"] == "zipf":
        n = zipf(int(o["seed"], 16), o["row"], V, o["k"], o["sharp"])[0]
    else:
        n = mix(int(o["seed"], 16), o["row"], V, o["k"], o["sharp"], o["lambda"])
    return [x << 44 - o["k"] for x in n]


def number(bits):
    return Fraction(struct.unpack(">f", bytes.fromhex(bits))[0])


# ---- Rules of chapter 10 --------------------------------------------------------------------------------------------

def draw(w, u):
    """DRAW-02 with a uniform in units of 2^-24."""
    point, total = u * sum(w) >> 24, 0
    for t, x in enumerate(w):
        total += x
        if total > point:
            return t
    raise ValueError("a row without weight")


class Step:
    """A test, the rows of its group, and what its nodes have."""

    def __init__(self, test, rows):
        self.__dict__.update(test)
        self.rows, self.parameter = rows, {k: [number(x) for x in test[k].split()] for k in ("alpha", "sigma", "theta")
                                           if k in test}

    def children(self, node):
        """TRV-01, TRV-04."""
        return [i for i, (parent, token) in enumerate(zip(self.parent, self.token)) if parent == node and token >= 0]

    def weights(self, node):
        return self.rows[self.p[node]]


def with_token(step, children, token):
    return next(((i, token) for i in children if step.token[i] == token), (None, token))


def match(step, node, children):
    """MAT-03."""
    return with_token(step, children, draw(step.weights(node), step.u[node]))


def greedy(step, node, children):
    """GRD-04."""
    p = step.weights(node)
    return with_token(step, children, p.index(max(p)))


def target(step, node, children):
    """TGT-01 to TGT-03."""
    p = list(step.weights(node))
    coin, reached = step.u[node] * sum(p) >> 24, 0
    alpha, sigma = (step.parameter[name][node] for name in ("alpha", "sigma"))
    for i in children:
        own, p[step.token[i]] = p[step.token[i]], 0
        reached += own
        if own and (coin * alpha < reached or (sigma < 1 and Fraction(own, 1 << 44) >= sigma)):
            return i, step.token[i]
    return None, draw(p, step.residual)


def onehot(step, node, children):
    """ONEH-07: distinct tokens, each against what is left."""
    p, seen = list(step.weights(node)), set()
    for i in children:
        token = step.token[i]
        if token not in seen and step.u[i] * sum(p) >> 24 < p[token]:
            return i, token
        seen.add(token)
        p[token] = 0
        if not any(p):
            break
    return None, draw(p, step.residual)


def constant(step, node, children):
    """CST-01."""
    p, theta = step.weights(node), step.parameter["theta"][node]
    for i in children:
        if Fraction(p[step.token[i]], 1 << 44) >= theta:
            return i, step.token[i]
    return None, draw(p, step.residual)


def single(step, node, children):
    """NIR-01."""
    p = step.weights(node)
    for i in children:
        q, token = step.rows[step.q[i]], step.token[i]
        if any(a and not b for a, b in zip(p, q)):
            continue
        x = max((x for x in range(len(p)) if q[x]), key=lambda x: (Fraction(p[x], q[x]), -x))
        if step.u[i] * q[token] * p[x] < p[token] * q[x] << 24:
            return i, token
    return None, draw(p, step.residual)


def recursive(step, node, children):
    """REC-01, SIB-01 to SIB-06. Entries are multiples of 2^-24, so that p - q is a binary32."""
    left, gone, first = step.weights(node), set(), True
    for i in children:
        q, token = list(step.rows[step.q[i]]), step.token[i]
        for x in gone if step.drawn == "without" else ():
            q[x] = 0
        Z, W = (1 << 44, 1 << 44) if first else (sum(left), sum(q))
        if step.u[i] * q[token] * Z < left[token] * W << 24 if q[token] else left[token] > 0:
            return i, token
        less = [max(0, a - round(Fraction(b * Z, W))) for a, b in zip(left, q)] if W else left
        gone.add(token)
        first = False
        if not any(less):
            break
        while sum(less) << 1 < 1 << 45:
            less = [2 * x for x in less]
        left = less
    return None, draw(left, step.residual)


def answer(rule, step):
    """TRV-02, TRV-05."""
    tokens, nodes, node = [], [], 0
    while True:
        children = step.children(node)
        if children or rule in ("match", "greedy"):
            node, token = globals()[rule](step, node, children)
        else:
            node, token = None, draw(step.weights(node), step.bonus)
        tokens.append(token)
        if node is None:
            return tokens, nodes
        nodes.append(node)


# ---- The file -------------------------------------------------------------------------------------------------------

def differing(document):
    """Tests whose answer is another one, and how many were recomputed, of small and of large vocabularies."""
    wrong, small, large = [], 0, 0
    for group in document["groups"]:
        if group["rule"] not in RULES:
            continue
        rows = [row_of(o["row"], group["V"]) for o in group["rows"]]
        for test in group["tests"]:
            if "error" in test["expected"]:
                continue
            tokens, nodes = answer(group["rule"], Step(test, rows))
            if (tokens, nodes) != (test["expected"]["tokens"], test["expected"]["nodes"]):
                wrong.append(test["id"])
            small, large = small + (group["V"] < 32000), large + (group["V"] >= 32000)
    return wrong, small, large


def main():
    with open(os.path.join(sys.argv[1], "tree.json")) as f:
        document = json.load(f)
    wrong, small, large = differing(document)
    if wrong:
        sys.exit(f"recomputed otherwise: {wrong}")
    if small < 1000 or large < 100:
        sys.exit(f"only {small} and {large} answers were recomputed")
    if "--self-test" in sys.argv:
        document["groups"] = [g for g in document["groups"] if g["V"] < 100]
        for group in document["groups"]:
            for test in group["tests"]:
                if "tokens" in test["expected"]:
                    test["expected"]["tokens"][-1] = (test["expected"]["tokens"][-1] + 1) % group["V"]
        if len(differing(document)[0]) != small:
            sys.exit("a wrong answer was not noticed")
    print(f"{small + large} answers recomputed, {large} of them with 32,000 tokens or more")


if __name__ == "__main__":
    main()
