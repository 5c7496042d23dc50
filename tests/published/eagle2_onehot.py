"""ONEHOT.

Read: SafeAILab/EAGLE cb7e084, eagle/model/utils.py, evaluate_posterior (EAGLE-2 and EAGLE-3; Apache 2.0).

The program has the leaf paths as rows of tokens, sorted by their nodes and padded with -1. At each depth it looks at
the rows that begin with the accepted tokens, tries each distinct next token with p(t), and after a refusal takes it
out of p and normalises. A fresh coin a test, r <= p(t): here it is u of the token's first node. The last token is
drawn elsewhere, from the row that evaluate_posterior returns; here by running sum with `last`. The program is
float32, after the logits processors; this is float64, on the row.

Rows are compared by tokens, so the children of equal siblings are tried together; ONEH-07 goes to the first of them.

EAGLE-1's evaluate_posterior (branch v1, 4a9cf3a) is RECURSIVE without replacement as sequoia.py, but for its bonus,
which leaves the logits processors out. It was not ported."""

import numpy as np

from coin import emitted


def step(tree, coins):
    paths = sorted(tree.paths())
    depth = max(len(path) for path in paths)
    rows = np.full((len(paths), depth), -1)
    for row, path in zip(rows, paths):
        row[: len(path)] = [tree.token[node] for node in path]
    prefix, best, changed = [rows[0][0]], 0, False
    for place in range(1, depth):
        if place != len(prefix):
            break
        changed = False
        alike = [j for j in range(len(rows)) if (rows[j][: len(prefix)] == prefix).all()]
        p = tree.p(paths[alike[0]][place - 1])
        mass, seen = 1.0, set()
        for j in alike:
            token = rows[j][place]
            if token == -1 or token in seen:
                continue
            seen.add(token)
            if coins.below(tree.u[first_node(tree, paths, rows, alike, place, token)], p[token], mass):
                prefix.append(token)
                best = j
                break
            p[token] = 0.0
            left = p.sum()
            p = p / left if left > 0 else p
            mass *= left
            changed = True
    nodes = paths[best][1 : len(prefix)]
    if changed and len(prefix) != depth:
        return emitted(tree, nodes, coins.draw(p, tree.last[0], mass))
    return emitted(tree, nodes, coins.draw(tree.p(paths[best][len(prefix) - 1]), tree.last[1]))


def first_node(tree, paths, rows, alike, place, token):
    """The node of a token's first test, whose coin it is."""
    return min(paths[j][place] for j in alike if rows[j][place] == token)


def amended(tree, coins):
    """As ONEH-07: of equal siblings the first is gone to."""
    return step(tree.without_twins(), coins)
