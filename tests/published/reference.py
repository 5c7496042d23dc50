"""An implementation behind its wire: panels and trees go to `assay worker SPEC`, tokens and paths come back."""

import os
import subprocess
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "conformance", "adapters", "python"))
import assay_iut


def number(claim, word):
    """The number of a word of a claim; 0 for None."""
    return assay_iut.CLAIMS[claim]["words"][word] if word else 0


class Reference:
    """One process: the reference, or the implementation of another `spec`. Close it by `with`."""

    def __init__(self, assay, spec="ref"):
        self.process = subprocess.Popen([assay, "worker", spec], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.frames = assay_iut.Frames(self.process.stdout, self.process.stdin)
        self.asked = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, op, args, tensors):
        self.asked += 1
        self.frames.write({"id": self.asked, "op": op, "args": args}, tensors)
        answer = self.frames.read()
        if answer is None:
            raise RuntimeError(f"the worker ended at {op}")
        header, reply = answer
        if header["id"] != self.asked or header["status"] != "ok":
            raise RuntimeError(f"{op}: {header}")
        return reply

    def panel(self, p, q, p_logit):
        """Rows p and q [S, V], and the logits that GREEDY looks at; all binary32."""
        S, V = p.shape
        none, off = np.zeros(2, "<i4"), np.array([1, 1], "<f4")
        self.ask("panel", {"V": V, "S": S, "C": 1, "draft_V": 0},
                 [("cls", np.zeros(V, "<i4")), ("next", np.zeros((S, 1), "<i4")), ("p", p), ("q", q),
                  ("p_logit", p_logit), ("q_logit", p_logit), ("temperature", off), ("top_k", none),
                  ("top_p", off), ("min_p", np.zeros(2, "<f4"))])

    def verify(self, rule, trees):
        """(tokens, nodes) of each tree, under one rule."""
        n, depth = len(trees), max(tree.depth for tree in trees)
        column = lambda name, kind: np.concatenate([getattr(tree, name) for tree in trees]).astype(kind)
        drawn = np.array([number("tree_drawn", word) for tree in trees for word in tree.drawn], "<i4")
        tensors = [("parameter", column("parameter", "<f8")), ("u", column("u", "<f8")),
                   ("last", np.array([tree.last for tree in trees], "<f8")), ("seed", np.zeros(1, "<u8")),
                   ("position", np.zeros(1, "<u8")), ("node_count", np.array([len(t.token) for t in trees], "<i4")),
                   *((name, column(name, "<i4")) for name in ("token", "parent", "state", "q_state")),
                   ("drawn", drawn), ("rule", np.full(n, number("tree_rules", rule), "<i4"))]
        args = {"n": n, "nodes": len(drawn), "depth": depth, "samplings": 0, "coins": number("tree_coins", "two")}
        reply = self.ask("verify_tree", args, tensors)
        return [(out[:length].tolist(), nodes[: length - 1].tolist())
                for out, nodes, length in zip(reply["out"], reply["out_node"], reply["out_len"].tolist())]
