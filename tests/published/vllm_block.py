"""BLOCK.

Read: vllm-project/vllm 02e318b, vllm/v1/worker/gpu/spec_decode/rejection_sampler_utils.py, with
USE_BLOCK_VERIFICATION (Apache 2.0): the joint ratio, the residual mass, the rejection and the resampling kernels,
after Sun et al. 2024 (arXiv 2403.10444).

As the kernels do, the joint ratio is kept as a logarithm, cut at 0; a residual mass of 0 over 0 stands for certainty.
What differs: the kernels have float32 logits, the rows here are given, and this is float64; a coin is above 0 there
and tested by u <= h; the last token is an exponential race there, here a draw by running sum with `last`."""

import numpy as np

from coin import emitted


def log(x):
    return np.log(x) if x > 0 else -np.inf


def step(tree, coins):
    path = [0]
    while tree.children(path[-1]):
        path.append(tree.children(path[-1])[0])
    n = len(path) - 1
    target, draft = [tree.p(node) for node in path], [tree.q(node) for node in path[1:]]
    ratio, joint = 0.0, []  # joint[i]: the logarithm of the ratio of the first i + 1 drafts
    for i, node in enumerate(path[1:]):
        ratio = min(ratio + (log(target[i][tree.token[node]]) - log(draft[i][tree.token[node]])), 0.0)
        joint.append(ratio)
    accepted = 0
    for i in range(n):
        h = np.exp(joint[i])
        if i < n - 1:
            mass = np.maximum(np.exp(joint[i]) * target[i + 1] - draft[i + 1], 0.0).sum()
            whole = mass + 1.0 - np.exp(joint[i])
            h = mass / whole if whole > 0 else 1.0
        if coins.below(tree.u[path[i + 1]], h):
            accepted = i + 1
    if accepted == n:
        return emitted(tree, path[1:], coins.draw(target[n], tree.last[1]))
    scale = np.exp(joint[accepted - 1]) if accepted else 1.0
    rest = np.maximum(scale * target[accepted] - draft[accepted], 0.0)
    return emitted(tree, path[1 : accepted + 1], coins.draw(rest, tree.last[0], rest.sum()))
