"""RECURSIVE, children drawn independently, from one row or from a row each.

Read: Infini-AI-Lab/Sequoia 0ff3ff7, Tree/SpecInferTree.py, accept_step and verify, and utils.py, get_residual: the
Sequoia authors' program of SpecInfer (arXiv 2305.09781). SpecInfer tries the children in random order (so arXiv
2602.16994, appendix B.4, recaps it); the program in the order of their draws, as chapter 10 does.

The program has one row q for all children. The port looks q up for each child, so that MIXED trees are compared, too.

What differs: the program draws a coin a node when the tree is made, as we give one a node; its test is p(t) >= r
q(t), so it takes p(t) = 0 at r = 0. Its last token is a multinomial draw, ours the draw by running sum with `last`.
It computes in float16, we in float64. It ends a request at the tokens 0 and 2, or when the residual is 0 / 0; both
are left out.

A version of FlexFlow's request_manager.cc (reject_sampling) tests r < d/d + 1e-6, the draft's share above and below
the line, so it takes every draft that the target lists. It was not ported."""

import numpy as np

from coin import emitted


def accept_step(tree, parent, coins):
    """(child, None), or (None, the row that the last token is drawn from and its mass)."""
    p, mass = tree.p(parent), 1.0
    for child in tree.children(parent):
        token, q = tree.token[child], tree.q(child)
        bound = p[token] / q[token] if q[token] > 0 else np.inf * (p[token] > 0)
        if coins.below(tree.u[child], bound, mass):
            return child, None
        p = np.maximum(p - q, 0.0)
        left = p.sum()
        if left > 0:
            p = p / left
        mass *= left
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
