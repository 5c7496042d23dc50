#!/usr/bin/env python3
"""A language model behind forward, commit and truncate, to copy: the tree of rows and the cache are real,
the model is a toy whose logits are a function of the tokens a row sees, and that keeps for each position what
a transformer would keep keys and values for.

    assay run --claims 'lm.*' --iut exec:"python3 example_model.py"
"""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut


class Model:
    def load_model(self, folder, sequences, positions, rows, layout_seed):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            self.V = json.load(f)["vocab_size"]
        self.positions, self.rows = positions, rows
        self.prefix = [[] for _ in range(sequences)]   # committed: the state after each token
        self.waiting = [[] for _ in range(sequences)]  # rows of the last forward: (parent, state)
        return self.V, 1, 1, 2

    def forward(self, shares):
        for sequence, *_ in shares:
            self.waiting[sequence] = []
        if sum(len(token) for _, token, _, _ in shares) > self.rows:
            raise assay_iut.Unsupported(f"more rows than the capacity, {self.rows}")
        rows = [self.share(*share) for share in shares]  # a refusal leaves no rows to commit
        for (sequence, *_), share in zip(shares, rows):
            self.waiting[sequence] = share
        return [[self.logits(share[i][1]) for i in want.tolist()]
                for share, (*_, want) in zip(rows, shares)]

    def share(self, sequence, token, parent, want):
        prefix, rows = self.prefix[sequence], []
        for i, (t, above) in enumerate(zip(token.tolist(), parent.tolist())):
            if not 0 <= t < self.V or not -1 <= above < i:
                raise assay_iut.BadInput(f"row {i}: token {t}, parent {above}")
            before = rows[above][1] if above >= 0 else prefix[-1] if prefix else (0, 0)
            if before[0] >= self.positions:
                raise assay_iut.Unsupported(f"more positions than the capacity, {self.positions}")
            rows.append((above, self.step(before, t)))
        if len(want) and not ((0 <= want) & (want < len(rows))).all():
            raise assay_iut.BadInput("a wanted row does not exist")
        return rows

    ### Your model: what a token makes of the state before it, and the logits of a state.
    def step(self, before, token):
        return before[0] + 1, (before[1] * 6364136223846793005 + token + 1) % 2**64

    def logits(self, state):
        words = np.arange(self.V, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(state[1])
        words ^= words >> np.uint64(29)
        words *= np.uint64(0xBF58476D1CE4E5B9)
        return (words >> np.uint64(40)).astype(np.float32) * np.float32(2**-21)

    def commit(self, sequence, path):
        rows, last = self.waiting[sequence], -1
        for i in path.tolist():
            if not 0 <= i < len(rows) or rows[i][0] != last:
                raise assay_iut.BadInput("commit: no path of rows of the last forward")
            last = i
        self.prefix[sequence] += [rows[i][1] for i in path.tolist()]
        self.waiting[sequence] = []
        return len(self.prefix[sequence])

    def truncate(self, sequence, keep):
        if not 0 <= keep <= len(self.prefix[sequence]):
            raise assay_iut.BadInput(f"truncate: {keep} of {len(self.prefix[sequence])} tokens")
        del self.prefix[sequence][keep:]
        self.waiting[sequence] = []
        return keep


if __name__ == "__main__":
    np.seterr(over="ignore")
    assay_iut.serve(Model(), name="example_model.py", version="1", lm_arithmetic="self consistent",
                    greedy_identical=1)
