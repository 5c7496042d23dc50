"""GREEDY.

Read: sgl-project/sglang 0e6ed14, sgl-kernel/csrc/speculative/eagle_utils.cu, VerifyTreeGreedy (Apache 2.0).

The kernel gets the argmax of every row from the caller, torch.argmax, whose choice among equal logits is not
documented; here it is the first. Nothing is drawn."""

import numpy as np

from coin import emitted


def step(tree, coins):
    nodes, node = [], 0
    while True:
        want, taken = int(np.argmax(tree.logits(node))), None
        for child in tree.children(node):
            if tree.token[child] == want:
                taken = child
                break
            coins.refused += 1
        if taken is None:
            return emitted(tree, nodes, want)
        nodes.append(taken)
        node = taken
