#!/usr/bin/env python3
"""The vectorised style: all cases of a batch at once, as a kernel or a tensor program has them.

    assay run --iut exec:"python3 example_batch.py"
"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut


def draw_rows(weights, u):
    """One token a row: the first id whose running sum exceeds u times the total."""
    sums = np.cumsum(weights, axis=1, dtype=np.float64)
    return (sums > (u * sums[:, -1])[:, None]).argmax(axis=1)


class Verifier:
    ### Your code. Everything is [n, ...]; what is not emitted reads -1.
    def verify_batch(self, panel, b):
        limit = self.count_drafts(panel, b)
        place = np.arange(b.gamma)
        token = np.where(place < limit[:, None], b.draft, 0)
        before = b.state[:, :-1]
        u = b.u[:, : b.gamma]
        accept = u * panel.q[before, token].astype(np.float64) < panel.p[before, token]
        accepted = np.logical_and.accumulate(accept & (place < limit[:, None]), axis=1).sum(axis=1)
        out = np.full((b.n, b.gamma + 1), -1, np.int32)
        out[:, :-1] = np.where(place < accepted[:, None], b.draft, -1)
        # Rows are [n, V]: a slice of the batch at a time keeps them small.
        for cases in np.array_split(np.arange(b.n), 1 + b.n * panel.V // 4_000_000):
            out[cases, accepted[cases]] = self.last_token(panel, b, cases, accepted[cases], limit[cases])
        return out, accepted + 1

    def count_drafts(self, panel, b):
        """Drafts of each case before its first -1."""
        place = np.arange(b.gamma + 1)
        ended = np.concatenate([b.draft == -1, np.ones((b.n, 1), bool)], axis=1) | (place >= b.len[:, None])
        limit = ended.argmax(axis=1)
        counts = place[:-1] < limit[:, None]
        if (((b.draft < 0) | (b.draft >= panel.V)) & counts).any():
            raise assay_iut.BadInput(f"a draft is not in 0..{panel.V - 1}")
        return limit

    def last_token(self, panel, b, cases, accepted, limit):
        """The correction after a rejection, or the bonus."""
        state = b.state[cases, accepted]
        p = panel.p[state]
        residual = np.maximum(p - panel.q[state], 0)
        corrects = (accepted < limit) & residual.any(axis=1)
        u = np.where(accepted < limit, b.u[cases, b.gamma], b.u[cases, b.gamma + 1])
        return draw_rows(np.where(corrects[:, None], residual, p), u)

    def residual(self, p, q):
        return np.maximum(p - q, 0)

    def draw(self, p, u):
        return draw_rows(p[None, :], np.array([u]))[0]

    def verify_greedy(self, logits, draft):
        best = logits.argmax(axis=1)
        wrong = np.flatnonzero(best[:-1] != draft)
        return best[: wrong[0] + 1] if len(wrong) else best


if __name__ == "__main__":
    assay_iut.serve(Verifier(), name="example_batch.py", version="1", rule="token", arithmetic="f64",
                    uniform_bits=24, tie="first", q_zero="accept", bad_draft="error", empty="from p")
