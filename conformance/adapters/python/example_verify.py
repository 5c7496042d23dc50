#!/usr/bin/env python3
"""One function is enough: token-wise speculative sampling of one chain, to copy.

    assay run --iut exec:"python3 example_verify.py"
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


### Your code: p [n+1, V] and q [n, V] are the rows of target and draft, draft [n] the tokens, and
### u [n+2] the uniforms: one to accept each draft, one for a correction, one for the bonus token.
def verify(p, q, draft, u):
    n = len(draft)
    for i, token in enumerate(draft):
        if not u[i] * np.float64(q[i, token]) < p[i, token]:
            residual = np.maximum(p[i] - q[i], 0)
            return [*draft[:i], draw(residual if residual.any() else p[i], u[n])]
    return [*draft, draw(p[n], u[n + 1])]


if __name__ == "__main__":
    assay_iut.serve(verify, name="example_verify.py", version="1", rule="token", arithmetic="f64",
                    uniform_bits=24, q_zero="accept", bad_draft="error", empty="from p")
