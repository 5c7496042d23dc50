"""A pool behind the Python adapter that does one thing wrong: argv[1]."""

import sys

import assay_iut

mode = sys.argv[1]


class Pool:
    def __init__(self, *given):
        self.given, self.inserted = given, []

    def insert(self, key, value):
        self.inserted.append((key, value))

    def look_up(self, key):
        if mode == "honest":  # what it was made of, and what came
            assert self.given == ("ring", 9, 3, 2), self.given
            assert self.inserted == [(8, (0, 7))], self.inserted
            return [(key, 1)]
        if mode == "too many":
            return [(0, 1)] * 3
        if mode == "too long":
            return [(0, 1, 2)]
        raise KeyError("a key")


class Pools:
    def new_pool(self, *given):
        return Pool(*given)


assay_iut.serve(Pools, name=mode, pools={"no kind": " ", "unknown kind": "lru fifo"}.get(mode, "ring"))
