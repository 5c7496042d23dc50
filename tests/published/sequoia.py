"""RECURSIVE, children drawn without replacement.

Read: Infini-AI-Lab/Sequoia 0ff3ff7, Tree/SpecTree.py, accept_step and verify, and utils.py, get_residual (Chen et al.
2024, arXiv 2402.12374).

The program keeps the draft's logits: after a refusal it lowers the logit of the token to the least finite number, and
takes the softmax anew. So does this port. Its test is strict, p(t) > r q(t).

What differs: coins as in specinfer.py; float64 for float16; logits are the logarithms of the row; no end at the
tokens 0 and 2, and none at a residual of 0 / 0."""

import numpy as np

from coin import emitted


def softmax(logits):
    shares = np.exp(logits - logits.max())
    return shares / shares.sum()


def accept_step(tree, parent, coins):
    """(child, None), or (None, the row that the last token is drawn from and its mass)."""
    p, mass, children = tree.p(parent), 1.0, tree.children(parent)
    if children:
        with np.errstate(divide="ignore"):
            logits = np.log(tree.q(children[0]))
    for child in children:
        token, q = tree.token[child], softmax(logits)
        bound = p[token] / q[token] if q[token] > 0 else np.inf * (p[token] > 0)
        if coins.below(tree.u[child], bound, mass):
            return child, None
        p = np.maximum(p - q, 0.0)
        left = p.sum()
        if left > 0:
            p = p / left
        mass *= left
        logits[token] = np.finfo(np.float64).min
    return None, (p, mass)


def step(tree, coins):
    nodes, node = [], 0
    while True:
        child, rest = accept_step(tree, node, coins)
        if child is None:
            u = tree.last[0] if tree.children(node) else tree.last[1]
            return emitted(tree, nodes, coins.draw(rest[0], u, rest[1]))
        nodes.append(child)
        node = child
