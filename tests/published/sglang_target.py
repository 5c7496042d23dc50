"""TARGET with both thresholds, and CONSTANT.

Read: sgl-project/sglang 3d7eaa8, python/sglang/kernels/jit/include/sgl_kernel/speculative/sampling.cuh,
TreeSpeculativeSamplingTargetOnly (Apache 2.0).

The kernel has a coin a node, for the choice among its children, and one for the last token of the request; the buffer
draft_probs starts at 0 and gets p(t) of each refused child. Our coins: u of the node, and of `last` the one that the
end calls for. It is float32 on float32 rows; this is float64 on the same rows.

The kernel adds p(t) to the running sum for each child, a token that stands twice included; TGT-01 adds it once.

CONSTANT is the kernel's threshold_single alone: the coin is 2, which no running sum exceeds. Its last token is drawn
from p without the refused children; CST-01 draws from p."""

import numpy as np

from coin import emitted


def walk(tree, coins, single, acc, coin_of):
    """The tokens and nodes of a step; coin_of(node) is the coin of the choice among a node's children."""
    nodes, node, p = [], 0, tree.p(0)
    draft, last_rejected = np.zeros_like(p), -1
    while True:
        reached, taken = 0.0, None
        for child in tree.children(node):
            token = tree.token[child]
            reached += p[token]
            if p[token] > 0:
                coin = coin_of(node)
                if coins.below(coin, reached / max(acc, 1e-9)) or p[token] >= single:
                    taken = child
                    break
                last_rejected = token
            draft[token] = p[token]
        if taken is None:
            break
        nodes.append(taken)
        node, p, last_rejected = taken, tree.p(taken), -1
        draft = np.zeros_like(p)
    rest = np.maximum(p - draft, 0.0)
    if not rest.any():  # the children have all of p, and the coin lay behind it
        return emitted(tree, nodes, int(last_rejected))
    u = tree.last[0] if tree.children(node) else tree.last[1]
    return emitted(tree, nodes, coins.draw(rest, u, rest.sum()))


def step(tree, coins):
    acc, single = (float(x) for x in tree.parameter[0])
    return walk(tree, coins, single, acc, lambda node: tree.u[node])


def step_constant(tree, coins):
    return walk(tree, coins, float(tree.parameter[0][0]), 1.0, lambda node: 2.0)


def amended(tree, coins):
    """As TGT-01: a repeated token counts once."""
    return step(tree.without_twins(), coins)


def amended_constant(tree, coins):
    """As CST-01: the last token comes from p."""
    tokens, nodes = step_constant(tree, coins)
    end = nodes[-1] if nodes else 0
    return [*tokens[:-1], coins.draw(tree.p(end), tree.last[0 if tree.children(end) else 1])], nodes
