"""Drawn panels and trees: rows with and without zeros, several V, depths and widths, repeats and placeholders."""

import numpy as np

from coin import Tree

SIZES = (2, 3, 5, 8, 17, 64, 151, 1000)
STATES = 24


class Panel:
    """Rows of a target and a draft that are alike, so that drafts stand; and logits, with ties and masks.

    even: rows and coins are multiples of 2^-6, so that coins often fall on a bound itself."""

    def __init__(self, rng, even=False):
        V = self.V = int(rng.choice(SIZES))
        p, other = (self.rows(rng, V) for _ in range(2))
        share = rng.choice([0.0, 0.3, 0.7, 1.0], size=(STATES, 1), p=[0.2, 0.35, 0.35, 0.1])
        q = share * p + (1 - share) * other
        self.coin_bits = 6 if even else 24
        if even:
            p, other = (rng.multinomial(64, row / row.sum(axis=1, keepdims=True)) / 64 for row in (p, q))
            q = np.where(share == 1, p, other)
        self.p, self.q = p.astype("<f4"), q.astype("<f4")
        self.logits = (rng.integers(-6, 7, (STATES, V)) / 2).astype("<f4")
        self.logits[self.logits == 0] *= rng.choice(np.array([1, -1], "<f4"))
        masks = rng.random((STATES, V)) < 0.2
        masks[np.arange(STATES), rng.integers(V, size=STATES)] = False
        self.logits[masks] = -np.inf

    @staticmethod
    def rows(rng, V):
        shares = np.exp(rng.normal(size=(STATES, V)) * rng.choice([0.3, 1.5, 3.0], size=(STATES, 1)))
        zeros = rng.random((STATES, V)) < rng.choice([0.0, 0.4, 0.9], size=(STATES, 1), p=[0.5, 0.35, 0.15])
        zeros[np.arange(STATES), rng.integers(V, size=STATES)] = False
        shares[zeros] = 0.0
        return shares / shares.sum(axis=1, keepdims=True)


def tokens_of(rng, panel, how, state, q_states, k):
    """The tokens of up to k children of a node."""
    V = panel.V
    if k == 0:
        return []
    if how in ("iid", "mixed"):
        return [int(rng.choice(V, p=row / row.sum())) for row in panel.q[q_states[:k]].astype(np.float64)]
    if how == "without":
        q = panel.q[q_states[0]].astype(np.float64)
        return np.argsort(rng.exponential(size=V) / np.where(q > 0, q, 1e-300))[: min(k, np.count_nonzero(q))].tolist()
    of = {"top": panel.p, "logits": panel.logits}[how][state]  # fixed: about the best
    best = np.argsort(-of, kind="stable")[: k + 1]
    return rng.permutation(best)[:k].tolist()


def tree(rng, panel, how, chain=False, even=False, repeats=True):
    """A tree. The rows of nodes depend on their tokens' path alone, so equal paths are the same context.

    how: iid, without, mixed, top (fixed, by p), logits (fixed, by logits). even: leaves lie at one depth. chain: one
    child a node. repeats: siblings may be equal, if fixed."""
    depth, width = int(rng.integers(1, 9 if chain else 6)), 1 if chain else int(rng.integers(1, 7))
    most = 10**9 if chain else int(rng.choice([12, 24, 128], p=[0.6, 0.35, 0.05]))
    rows, token, parent, state, q_state = {}, [-1], [-1], [int(rng.integers(STATES))], [-1]
    drawn, path, level = ["fixed"], [()], [0]
    word = how if how in ("iid", "without", "mixed") else "fixed"
    repeats = repeats and how in ("top", "logits") and rng.random() < 0.3
    for _ in range(depth):
        reached = []
        for node in level:
            k = int(rng.integers(1 if even or chain or node == 0 else 0, width + 1))
            q_states = rng.integers(STATES, size=k) if how == "mixed" else np.full(k, rng.integers(STATES))
            if rng.random() < 0.6:
                q_states[:] = state[node]  # the row that is like p
            tokens = tokens_of(rng, panel, how, state[node], q_states, k)
            if repeats and len(tokens) > 1:
                tokens[int(rng.integers(1, len(tokens)))] = tokens[0]
            if len(token) + len(tokens) > most and not (even and reached):
                tokens = tokens[: max(most - len(token), 0)]
            for place, t in enumerate(tokens):
                if not even and not chain and rng.random() < 0.03:
                    t = -1
                way = (*path[node], t)
                reached.append(len(token))
                token.append(t)
                parent.append(node)
                path.append(way)
                state.append(rows.setdefault(way, int(rng.integers(STATES))))
                q_state.append(int(q_states[place]))
                drawn.append(None)
            drawn[node] = word if tokens else None
        level = reached
    n = len(token)
    coins = rng.integers(0, 2**panel.coin_bits, n + 2) * 2.0**-panel.coin_bits
    return Tree(panel, token=np.array(token), parent=np.array(parent), state=np.array(state),
                q_state=np.array(q_state), drawn=drawn, parameter=np.zeros((n, 2)), u=coins[:n],
                last=coins[n:].tolist(), depth=depth)


def short(x):
    """A binary32 above 0."""
    return float(np.float32(x))
