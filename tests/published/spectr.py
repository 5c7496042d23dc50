"""KSEQ.

Read: Thomas et al. 2026 (arXiv 2602.16994), appendix B.3, algorithm 3, which recaps k-SEQ of Sun et al. 2023 (SpecTr,
arXiv 2310.15141) with its division factor; the port was written before. The older paper was not at hand. Its authors
published no program that we know. They accept at eta <= min(1, p(x) / (rho q(x))).

SpecTr verifies whole drafts, token by token, among those that agree so far. Each node of a tree is such a place. The
factor of a node is given: rho*, or more; a node whose factor is 0 has its number of children. float64 throughout;
coins are u of the child, and `last` for the residual, which the paper samples."""

import numpy as np

from coin import emitted


def acceptance(target, draft, rho):
    """beta: the chance that one draft is accepted."""
    return np.minimum(draft, target / rho).sum()


def smallest_factor(target, draft, k):
    """rho*, where 1 - (1 - beta)^k = rho beta, by bisection in [1, k]."""
    low, high = 1.0, float(k)
    for _ in range(60):
        rho = (low + high) / 2
        beta = acceptance(target, draft, rho)
        low, high = (low, rho) if 1 - (1 - beta) ** k <= rho * beta else (rho, high)
    return high


def step(tree, coins):
    nodes, node = [], 0
    while True:
        children, target = tree.children(node), tree.p(node)
        if not children:
            return emitted(tree, nodes, coins.draw(target, tree.last[1]))
        k, draft = len(children), tree.q(children[0])
        rho = tree.parameter[node][0] / 65536 or float(k)
        taken = None
        for child in children:
            token = tree.token[child]
            bound = target[token] / (rho * draft[token]) if draft[token] > 0 else np.inf * (target[token] > 0)
            if coins.below(tree.u[child], bound):
                taken = child
                break
        if taken is None:
            beta = acceptance(target, draft, rho)
            accepted = 1 - (1 - beta) ** k
            scale = accepted / beta if beta > 0 else float(k)
            rest = np.maximum(target - np.minimum(draft, target / rho) * scale, 0.0)
            return emitted(tree, nodes, coins.draw(rest, tree.last[0], rest.sum()))
        nodes.append(taken)
        node = taken
