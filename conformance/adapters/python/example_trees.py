#!/usr/bin/env python3
"""Steps with several drafts a place: three rules for the children of a node, to copy.

    assay run --iut exec:"python3 example_trees.py"
"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut


def draw(weights, u):
    """The first id whose running sum exceeds u times the total."""
    sums = np.cumsum(weights, dtype=np.float64)
    return int(np.searchsorted(sums, u * sums[-1], side="right"))


### Your code: a rule says at a node which of its children is gone to, or else the token that ends the step.
def target(tree, node, children):
    """One coin against the running sum of p over the children; a repeat counts once."""
    p = tree.p(node).astype(np.float64)
    alpha, sigma = tree.parameter[node] if tree.parameter is not None else (1.0, 1.0)
    coin, total, reached = tree.u[node], p.sum(), 0.0
    for child in children:
        token = tree.token[child]
        mass, p[token] = p[token], 0.0
        reached += mass
        if mass > 0 and (coin * total * alpha < reached or (sigma < 1 and mass >= np.float32(sigma))):
            return child, None
    return None, draw(p, tree.last[0])


def match(tree, node, children):
    """A draw from p; the first child that has it is gone to."""
    token = draw(tree.p(node), tree.u[node])
    same = [child for child in children if tree.token[child] == token]
    return (same[0], None) if same else (None, token)


def recursive(tree, node, children):
    """Each child is tested against what the refusals before it left of p."""
    left, gone = tree.p(node).astype(np.float64), []
    for child in children:
        token, q = tree.token[child], tree.q(child).astype(np.float64)
        if tree.drawn[node] == "without":
            q[gone] = 0.0
        mass = q.sum()
        law = q / mass if mass > 0 else q
        ratio = left / left.sum()
        if tree.u[child] * law[token] < ratio[token]:
            return child, None
        less = np.maximum(ratio - law, 0.0)
        if not less.any():
            break
        left = less
        gone.append(token)
    return None, draw(left, tree.last[0])


RULES = {"target": target, "match": match, "recursive": recursive}


def step(tree):
    """The tokens of a step, and the nodes that it went to."""
    tokens, nodes, node = [], [], 0
    while True:
        children = tree.children(node)
        if children or tree.rule == "match":
            node, last = RULES[tree.rule](tree, node, children)
        else:
            node, last = None, draw(tree.p(node), tree.last[1])
        if node is None:
            return [*tokens, last], nodes
        tokens.append(tree.token[node])
        nodes.append(node)


class Trees:
    def verify_tree(self, trees):
        return [step(tree) for tree in trees]


if __name__ == "__main__":
    assay_iut.serve(Trees, name="example_trees.py", version="1", arithmetic="f64", uniform_bits=24,
                    tree_rules="target match recursive", tree_drawn="fixed iid without", tree_bonus="drawn",
                    tree_coins="two one", lossless_any="target match", lossless_drawn="recursive")
