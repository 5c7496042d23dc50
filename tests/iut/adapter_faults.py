"""An implementation behind the Python adapter that does one thing wrong, or unusual: argv[1]."""

import sys

import assay_iut

mode = sys.argv[1]


class Odd:
    def __init__(self):
        if mode == "prints":
            print("loading")
        if mode == "absent":
            raise assay_iut.Unavailable("no card in slot 3 " * 10000 + "\udc80")

    def verify(self, p, q, draft, u):
        if mode == "raises":
            raise KeyError("no such table")
        if mode == "refuses":
            raise assay_iut.Unsupported("more than one draft")
        if mode == "refuses at length":
            raise assay_iut.Unsupported("more than one draft " * 10000 + "\udc80")
        if mode == "too many":
            return [0] * 99
        if mode == "prints":
            print("verifying")
        if mode == "writes":
            assert p[0, 0] == 0.5, p  # a copy: what the last call wrote is gone
            p[0, 0] = 1
        if mode == "own" and u is not None:
            raise AssertionError(f"u is {u}")
        if mode == "seeded" and u != (2**64 - 1, 5):
            raise AssertionError(f"u is {u}")
        if mode == "shapes" and (p.shape, q.shape, draft.tolist(), u.tolist()) != ((2, 4), (1, 4), [2], [0, 0.5, 0.25]):
            raise AssertionError(f"{p.shape} {q.shape} {draft} {u}")
        return [1]

    def served(self, logits, sampling):
        assert sampling == (1, 0, 1, 0), sampling
        return [0.25, 0.25, 0.5, 0]

    def stream(self, panel, start, seed, gamma, k, eos):
        assert (start, seed, gamma, k, eos) == (1, 2**64 - 1, 2, 3, -1)
        return [2, 1, 0], [1, 0]


words = {"name": mode, "rule": "token"}
if mode in ("own", "seeded"):
    words["uniforms"] = mode
if mode == "claim":
    words["colour"] = "red"
if mode == "word":
    words["rule"] = "lossless"
assay_iut.serve(Odd, **words)
