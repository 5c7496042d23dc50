"""SINGLE.

Read: Leviathan et al. 2023 (arXiv 2211.17192), appendix A.2, the non-iterative version of rejection sampling: draw x
~ q and r ~ U(0, 1), accept if r < p(x) / (M q(x)), M = max p / q, and otherwise sample from the unmodified p. No
program is known to us.

The paper has one draft. Several are tried in turn here, each with p as it was, which is the same sampling repeated.
The coins are u of the child, and `last`. float64."""

import numpy as np

from coin import emitted


def step(tree, coins):
    nodes, node = [], 0
    while True:
        p, taken, children = tree.p(node), None, tree.children(node)
        for child in children:
            q, token = tree.q(child), tree.token[child]
            with np.errstate(divide="ignore"):
                M = np.max(p[p > 0] / q[p > 0])
            if coins.below(tree.u[child], p[token] / (M * q[token]) if q[token] > 0 else 0.0):
                taken = child
                break
        if taken is None:
            return emitted(tree, nodes, coins.draw(p, tree.last[0] if children else tree.last[1]))
        nodes.append(taken)
        node = taken
