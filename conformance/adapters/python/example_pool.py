#!/usr/bin/env python3
"""A pool of n-grams, the memory of lookahead decoding, to copy.

    assay run --only 'pool.*' --iut exec:"python3 example_pool.py"
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut


### Your code: at most G values of each key; a value is a tuple of N - 1 tokens.
class Pool:
    def __init__(self, kind, G):
        self.ring, self.G = kind == "ring", G
        self.values, self.turn = {}, {}  # of a key: its values, and the slot that is next

    def insert(self, key, value):
        values, turn = self.values.setdefault(key, []), self.turn.get(key, 0)
        if self.ring and value not in values and self.G:
            values[turn : turn + 1] = [value]
            self.turn[key] = (turn + 1) % self.G
        if not self.ring:  # a value that it has becomes the newest
            kept = [v for v in values if v != value] + [value]
            self.values[key] = kept[max(0, len(kept) - self.G) :]

    def look_up(self, key):
        return self.values.get(key, [])


class Pools:
    def new_pool(self, kind, V, N, G):
        return Pool(kind, G)


if __name__ == "__main__":
    assay_iut.serve(Pools, name="example_pool.py", version="1", pools="lru ring")
