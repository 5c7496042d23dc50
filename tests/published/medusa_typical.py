"""TYPICAL.

Read: FasterDecoding/Medusa e2a5d20, medusa/model/utils.py, evaluate_posterior with sampling = 'typical' and fast =
True, and generate_candidates for the padding and the last token (Apache 2.0).

The program has the leaf paths as rows of tokens. A short one is padded: with the token 0, whose row is that of the
last node of the tree. A draft is accepted if p(t) > min(epsilon, delta e^-H(p)); the longest run of a row wins, then
the larger sum of log p. The token behind it is the root of the next tree: with fast = True the argmax. (With fast =
False it would be drawn from the tokens with p at or above the threshold.)

The threshold of a node is computed by `threshold` and handed to the reference as binary32. The program is float16,
this is float64.

TYP-01 takes of several longest paths the one whose last node stands first, has no padding, and draws the last token
from the whole p."""

import numpy as np

from coin import NEAR, emitted


def threshold(p, epsilon, delta):
    entropy = -np.sum(p * np.log(p + 1e-5))
    return np.float32(min(epsilon, np.exp(-entropy) * delta))


def step(tree, coins, amend=False):
    paths = tree.paths()
    last, depth = max(max(path) for path in paths), max(len(path) for path in paths)
    lengths, sums = [], []
    for path in paths:
        length, likelihood, padded = 0, [], path + [last] * (depth - len(path))
        for place in range(1, len(path) if amend else depth):
            token = tree.token[path[place]] if place < len(path) else 0
            p, bound = tree.p(padded[place - 1])[token], tree.parameter[padded[place - 1]][0]
            coins.near |= bool(abs(p - bound) < NEAR)
            if not p > bound:
                coins.refused += 1
                break
            length += 1
            likelihood.append(np.log(p))
        lengths.append(length)
        sums.append(sum(likelihood))
    longest = max(lengths)
    among = [j for j, length in enumerate(lengths) if length == longest]
    if amend:
        path = paths[min(among, key=lambda j: paths[j][longest])]
        end = path[longest]
        u = tree.last[0 if tree.children(end) else 1]
        return emitted(tree, path[1 : longest + 1], coins.draw(tree.p(end), u))
    path = paths[max(among, key=lambda j: (sums[j], -j)) if longest else 0]
    behind = path[longest] if longest < len(path) else last
    tokens = [int(tree.token[node]) for node in path[1 : longest + 1]] + [0] * (longest - len(path) + 1)
    return [*tokens, int(np.argmax(tree.p(behind)))], path[1 : longest + 1]


def amended(tree, coins):
    """As TYP-01: no padding, of the longest paths that whose last node stands first, and a draw from p behind it."""
    return step(tree, coins, amend=True)
