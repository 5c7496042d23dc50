"""LENIENT, of chains.

Read: lucidrains/speculative-decoding 0434d06, speculative_decoding/speculative_decoding.py, speculative_decoding
(MIT): algorithm 1 of Leviathan et al. 2023 (arXiv 2211.17192) with lenience, appendix A.5. No program of it on trees
is known to us.

The program multiplies q(x) of the drafts by the lenience, and refuses where r > p(x) / q(x). Its residual is max(0, p
- q), without the lenience; the paper has it in the comparison alone. LEN-01 has p - l q. So below lenience 1 the last
token after a refusal may differ.

What differs besides: coins are u of the node and `last`, a multinomial draw is one by running sum, and float64 for
float32. The filters are not part of the rule."""

import numpy as np

from coin import emitted


def step(tree, coins, of_residual=1.0):
    path = [0]
    while tree.children(path[-1]):
        path.append(tree.children(path[-1])[0])
    drafts = path[1:]
    lenience = tree.parameter[0][0]
    accepted = len(drafts)
    for place, node in enumerate(drafts):
        token = tree.token[node]
        p, q = tree.p(path[place])[token], tree.q(node)[token] * lenience
        if not coins.below(tree.u[node], p / q if q > 0 else np.inf * (p > 0)):
            accepted = place
            break
    if accepted == len(drafts):
        return emitted(tree, drafts, coins.draw(tree.p(path[-1]), tree.last[1]))
    rest = np.maximum(tree.p(path[accepted]) - of_residual * tree.q(drafts[accepted]), 0.0)
    return emitted(tree, drafts[:accepted], coins.draw(rest, tree.last[0], rest.sum()))


def amended(tree, coins):
    """As LEN-01: the residual has the lenience, too."""
    return step(tree, coins, tree.parameter[0][0])
