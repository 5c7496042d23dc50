"""Lets the suite test an implementation written in Python (standard library and NumPy).

The least that is needed is one function, called case by case:

    import assay_iut

    def verify(p, q, draft, u):
        ...                       # p [n+1, V], q [n, V], draft [n], u [n+2]: accept, correction, bonus
        return tokens             # 1 to n+1 of them

    assay_iut.serve(verify, name="my verifier", rule="token")

and `assay run --iut exec:"python3 my_verifier.py"`. Instead of a function, `serve` takes an object with
any of the methods below; what it lacks is not claimed and not tested.

    verify(p, q, draft, u) -> tokens             one case
    verify_batch(panel, batch) -> out, out_len   all at once: out [n, gamma+1], unused places -1
    verify_greedy(logits, draft) -> tokens       one case at temperature 0; logits [n+1, V]
    draw(p, u) -> token                          one row
    served(logits, sampling) -> probabilities    one row
    residual(p, q) -> weights                    one row: max(0, p - q)
    stream(panel, start, seed, gamma, k, eos) -> tokens, accepted
                                                 one stream that drafts for itself; `accepted` counts
                                                 the accepted drafts of each step and may be None
    load_panel(panel)                            called when a new panel comes
    load_model(folder, sequences, positions, rows, layout_seed) -> V, layers, kv_heads, head_dim
                                                 a model from a Hugging Face folder; every sequence empty
    forward(shares) -> list of logits [len(want), V]
                                                 shares: (sequence, token, parent, want), one a sequence
    commit(sequence, path) -> length             rows of its last forward become the end of its prefix
    truncate(sequence, keep) -> length           cuts its prefix
    cache_read(sequence, layer, position) -> key, value
                                                 [kv_heads, head_dim] each (optional)
    cache_poison()                               NaN into all that is not committed (optional)
    generate(target, draft, prompts, gamma, k, eos, sampling, seeds) -> list of (tokens, accepted)
                                                 a whole engine: folders of the two models (draft None: there
                                                 is none), prompts and seeds one a request, and for each its
                                                 tokens and, as in `stream`, accepted counts or None; with
                                                 the claim accepted_total=1 their total instead. The claim
                                                 eos_always=1 says that the end of sequence is always that
                                                 of the target's config.json: eos then is that id
    generate_by(method, sizes, target, prompts, k, eos, sampling, seeds) -> as `generate`
                                                 the same without a draft model, by "jacobi" (sizes: tokens of
                                                 a block), "lookahead" (W, N, G) or "lookup" (longest n-gram,
                                                 drafts); claim methods="jacobi lookup", or what you have, and
                                                 those for temperature 0 alone as greedy_methods, too
                                                 With "ouroboros" among them (W, N, K), it gets the keywords `draft`
                                                 and `gamma` as `generate` does, None and 0 by the other methods
                                                 With the claim per_request="sampling seed budget ends", or some of
                                                 these, both get the keyword `each`: for each request its sampling,
                                                 seed, budget and ends, whatever of it is claimed or not
                                                 With the claim processors="repetition presence frequency", or
                                                 some of these, both get the keyword `processors`: for each
                                                 request its repetition (1: off), presence and frequency (0: off)
                                                 With the claim logprobs="raw" an answer has a third part: the
                                                 natural logarithms of the probabilities of its tokens. Where they
                                                 cost much, give the object an attribute `tell`: before each call
                                                 it becomes True if they are asked for, else False
    verify_tree(trees) -> list of (tokens, nodes)
                                                 all steps of a call, each a Tree: the tokens that it emits, and
                                                 the nodes that it goes to, one less. Claim tree_rules="target", or
                                                 what you have, with tree_drawn and lossless_any or lossless_drawn
    new_pool(kind, V, N, G) -> pool              an empty pool of n-grams, kind "lru" or "ring"; it has
                                                 insert(key, value) and look_up(key) -> list of values, a
                                                 value being N - 1 tokens; claim pools="lru ring", or one

`u` is float64 if the claim is uniforms="supplied", (seed, position) if "seeded", and None if "own". The
rows p and q of `verify` are copies, which it may overwrite; all other arrays are read-only. A panel has V,
S, C, cls, next, p, q, p_logit, q_logit, target, draft as iut.h explains them, and draft_V, d2t, draft_q,
draft_q_logit, which are 0 and None unless the claim is draft_vocab="panel". A batch of verify_batch has
n, gamma, len, state, draft, u, seed, position, coins (a word), noise. `sampling` has temperature, top_k, top_p, min_p; `eos` is -1
where no token ends a stream.

Raise BadInput for an input that breaks a rule, Unsupported for a case you cannot serve, and Unavailable
where a device or a server is absent; any other exception is reported as a failure of the implementation.
Prints go to standard error.
"""

import collections
import json
import os
import struct
import sys
import textwrap
import traceback

import numpy as np

__all__ = ["serve", "BadInput", "Unsupported", "Unavailable"]

Sampling = collections.namedtuple("Sampling", "temperature top_k top_p min_p")
Processors = collections.namedtuple("Processors", "repetition presence frequency")

# Operations and claims, as `assay interface` prints them.
with open(os.path.join(os.path.dirname(__file__), "interface.json"), encoding="utf-8") as file:
    INTERFACE = json.load(file)
OPERATIONS = {row["op"]: row for row in INTERFACE["operations"]}
CLAIMS = {row["claim"]: row for row in INTERFACE["claims"]}
METHODS = CLAIMS["methods"]["words"]
RULES_WITH_Q = ("recursive", "kseq", "block", "single", "lenient")
TYPES = {"i32": np.dtype("<i4"), "u64": np.dtype("<u8"), "f32": np.dtype("<f4"), "f64": np.dtype("<f8")}
MAX_HEADER = 1 << 16


class BadInput(Exception):
    """The input breaks a rule of the specification."""


class Unsupported(Exception):
    """This case cannot be served."""


class Unavailable(Exception):
    """What it needs is absent, such as a device or a server: the case is UNAVAILABLE, neither passed nor failed."""


class Record:
    """Named values: a panel or a batch."""

    def __init__(self, **values):
        self.__dict__.update(values)


class Tree:
    """A step of verify_tree; arrays have an entry a node, and node 0 is the root (iut_tree_batch of iut.h).

    rule (a word), token, parent, state, q_state, drawn (a word, or None, a node), parameter [nodes, 2] or None,
    sampling and draft_sampling (None: the panel's rows hold), u (None unless uniforms are supplied), last [2],
    noise [V] or None, coins (a word), bonus or None, seed, position."""

    def __init__(self, panel, **values):
        self.panel = panel
        self.__dict__.update(values)
        self.below = [[] for _ in self.token]
        for node, (parent, token) in enumerate(zip(self.parent.tolist(), self.token.tolist())):
            if parent >= 0 and token >= 0:
                self.below[parent].append(node)

    def p(self, node):
        """The target's served row behind a node; with `sampling`, serve p_logit(node) instead."""
        return self.panel.p[self.state[node]]

    def q(self, node):
        """The row that the token of a node was drawn from, or None."""
        return self.panel.q[self.q_state[node]] if self.q_state[node] >= 0 else None

    def p_logit(self, node):
        return self.panel.p_logit[self.state[node]]

    def q_logit(self, node):
        return self.panel.q_logit[self.q_state[node]] if self.q_state[node] >= 0 else None

    def children(self, node):
        """The nodes below it as they are tried, without placeholders (TRV-04)."""
        return self.below[node]

    def fault(self):
        """What chapter 10 refuses of a list whose tokens and parents are right, and where; or None. Nodes that a
        placeholder makes absent are not looked at (TRV-04)."""
        reached, rows, states, laws_of = [0], len(self.panel.p), self.state.tolist(), self.q_state.tolist()
        for node in reached:
            children = self.below[node]
            if not 0 <= states[node] < rows:
                return f"node {node}: there is no row {states[node]}"
            if self.rule in RULES_WITH_Q:
                laws = {laws_of[i] for i in children}
                if not all(0 <= law < rows for law in laws):
                    return f"node {node}: its children are drawn from the rows {sorted(laws)}"
                if self.drawn[node] == "without" and len(laws) > 1:
                    return f"node {node}: its children were drawn without replacement from several rows (SIB-04)"
            if children and self.parameter is not None and not in_range(self.rule, self.parameter[node], len(children)):
                return f"node {node}: parameters {self.parameter[node].tolist()}"
            if self.rule == "block" and len(children) > 1:
                return f"node {node}: {len(children)} children, where blocks take chains (BLK-01)"
            reached += children
        return None


def in_range(rule, parameter, children):
    """TRV-11: the ranges of TGT-03, KSQ-01, TYP-01, CST-01, LEN-01."""
    x, y = parameter
    if rule == "target":
        return 0 < x <= 1 and 0 < y <= 1
    if rule == "kseq":
        return children == 1 or x == 0 or (x == int(x) and 65536 <= x <= children * 65536)
    if rule == "lenient":
        return 0 < x <= 1
    return x >= 0 if rule == "typical" else x > 0 if rule == "constant" else True


def claims_of(words):
    """The claims as the suite reads them. Words it does not know are an error of the author."""
    claims = {"name": "unnamed", "version": "0", "device": "cpu"}
    for key, value in words.items():
        if key not in CLAIMS:
            raise ValueError(f"there is no claim {key!r}")
        kind, known = CLAIMS[key]["kind"], CLAIMS[key].get("words", {})
        if kind in ("text", "number"):
            claims[key] = str(value) if kind == "text" else int(value)
            continue
        said = [value] if kind == "choice" else sorted(set(value.split()))
        if not said or not set(said) <= set(known):
            some = "choose from" if kind == "choice" else "choose some of"
            raise ValueError(f"claim {key}={value!r}: {some} {', '.join(known)}")
        claims[key] = sum(known[word] for word in said)
    return claims


def size_of(term, args):
    """An extent: a number, the name of an argument, or that and a number."""
    name, *plus = str(term).split()
    number = args[name] if name in args else int(name)
    return number + (int("".join(plus)) if plus else 0)


class Frames:
    """Frames over two binary files (FRM-01 to FRM-03)."""

    def __init__(self, source, sink):
        self.source, self.sink = source, sink

    def read(self):
        """The next request as (header, {name: array}), or None at the end of input."""
        prefix = self.source.read(12)
        if not prefix:
            return None
        if len(prefix) < 12:
            raise EOFError("end of input within a frame")
        length, size = struct.unpack("<QI", prefix)
        if size > MAX_HEADER or length < 4 + size:
            raise ValueError(f"a frame of {length} bytes with a header of {size}")
        header = json.loads(self.exactly(size))
        tensors = {}
        for name, kind, shape in header["tensors"]:
            dtype = TYPES[kind]
            data = self.exactly(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
            tensors[name] = np.frombuffer(data, dtype).reshape(shape)  # read-only
        return header, tensors

    def exactly(self, size):
        data = self.source.read(size)
        if len(data) < size:
            raise EOFError("end of input within a frame")
        return data

    def write(self, header, tensors=()):
        """`tensors` is a list of (name, array)."""
        header["tensors"] = [[name, kind_of(a), list(a.shape)] for name, a in tensors]
        text = json.dumps(header, separators=(",", ":")).encode()
        length = 4 + len(text) + sum(a.nbytes for _, a in tensors)
        self.sink.write(struct.pack("<QI", length, len(text)) + text)
        for _, a in tensors:
            self.sink.write(np.ascontiguousarray(a).data)
        self.sink.flush()


def kind_of(array):
    return next(kind for kind, dtype in TYPES.items() if dtype == array.dtype)


def put(out, i, tokens, what):
    """Row i of `out` becomes the tokens; returns how many. An answer that does not fit is the author's
    error, and clear."""
    tokens = [int(t) for t in tokens]
    if len(tokens) > out.shape[1]:
        raise ValueError(f"{what} returned {len(tokens)} tokens where at most {out.shape[1]} fit")
    out[i, : len(tokens)] = tokens
    return len(tokens)


def streams(answers, n, k, what):
    """The arrays that n answers (tokens; accepted counts, their total or None; log-probabilities, if told) are."""
    out, accepted = np.full((n, k), -1, "<i4"), np.full((n, k), -1, "<i4")
    out_len, logprob = np.zeros(n, "<i4"), np.full((n, k), np.nan, "<f4")
    for i, (tokens, steps, *told) in enumerate(answers):
        out_len[i] = put(out, i, tokens, what)
        if steps is not None:
            put(accepted, i, [steps] if np.ndim(steps) == 0 else steps, what + " (accepted)")
        if told:
            if len(told[0]) != out_len[i]:
                raise ValueError(f"{what} told {len(told[0])} log-probabilities of {out_len[i]} tokens")
            logprob[i, : out_len[i]] = told[0]
    return out, out_len, accepted, logprob


def of_bits(rows):
    """Samplings that travel as four words each."""
    return [Sampling(*(float(x) for x in row.view("<f4")[[0]]), int(row[1]), *(float(x) for x in row.view("<f4")[2:]))
            for row in rows]


def word_of(claim, number):
    """The word of a set that has this number; for 0 what holds if nothing is said, or None."""
    return next((word for word, known in CLAIMS[claim]["words"].items() if known == number), CLAIMS[claim].get("default"))


def samplings(tensors):
    return [Sampling(*row) for row in zip(*(tensors[name].tolist() for name in Sampling._fields))]


class Server:
    """One method an operation: arguments and arrays in, the arrays of the reply out, in their order."""

    def __init__(self, implementation, words):
        self.iut = implementation
        self.claims = claims_of(words)
        if hasattr(implementation, "generate_by") != ("methods" in self.claims):
            raise ValueError("generate_by and the claim methods=... belong together")
        if hasattr(implementation, "verify_tree") != ("tree_rules" in self.claims):
            raise ValueError("verify_tree and the claim tree_rules=... belong together")
        self.panel = None
        self.shape = None  # of the model
        ops = [op for op in OPERATIONS if self.offers(op)]
        self.claims["ops"] = " ".join(ops)

    def offers(self, op):
        """Is the operation claimed? One on a model only with load_model."""
        if OPERATIONS[op]["needs"] == "model" and not hasattr(self.iut, "load_model"):
            return False
        names = {"verify": ("verify", "verify_batch"), "model": ("load_model",), "pool": ("new_pool",)}
        return op == "panel" or any(hasattr(self.iut, name) for name in names.get(op, (op,)))

    def op_panel(self, args, t):
        sampling = samplings(t)
        arrays = {name: t[name] for name in ("cls", "next", "p", "q", "p_logit", "q_logit")}
        own = {name: t.get(name) for name in ("d2t", "draft_q", "draft_q_logit")}
        self.panel = Record(V=args["V"], S=args["S"], C=args["C"], target=sampling[0], draft=sampling[1],
                            draft_V=args.get("draft_V", 0), **arrays, **own)
        if hasattr(self.iut, "load_panel"):
            self.iut.load_panel(self.panel)
        return ()

    def op_served(self, args, t):
        rows = self.panel.q_logit if args["of_draft"] else self.panel.p_logit
        sampling = self.panel.draft if args["of_draft"] else self.panel.target
        return ([self.iut.served(rows[s], sampling) for s in t["state"].tolist()],)

    def op_residual(self, args, t):
        return ([self.iut.residual(self.panel.p[s], self.panel.q[s]) for s in t["state"].tolist()],)

    def uniforms(self, t, i):
        """What a case gets as u, before it is cut to its drafts."""
        if "u" in t:
            return t["u"][i]
        if self.claims.get("uniforms") == CLAIMS["uniforms"]["words"]["seeded"]:
            return ((int(t["seed"][0]) + i) % 2**64, int(t["position"][0]))
        return None

    def op_draw(self, args, t):
        return ([int(self.iut.draw(self.panel.p[s], self.uniforms(t, i))) for i, s in enumerate(t["state"].tolist())],)

    def cases(self, args, t):
        """(i, states of the rows, drafts that count) of each case: a -1 ends its list (ACC-07)."""
        for i, (length, state) in enumerate(zip(t["len"].tolist(), t["state"])):
            draft = t["draft"][i, :length]
            ends = np.flatnonzero(draft == -1)
            draft = draft[: ends[0]] if len(ends) else draft
            bad = draft[(draft < 0) | (draft >= self.panel.V)]
            if len(bad):
                raise BadInput(f"case {i}: draft {bad[0]} is not in 0..{self.panel.V - 1}")
            yield i, state[: len(draft) + 1], draft

    def op_verify(self, args, t):
        n, gamma = args["n"], args["gamma"]
        if hasattr(self.iut, "verify_batch"):
            batch = Record(n=n, gamma=gamma, len=t["len"], state=t["state"], draft=t["draft"], u=t.get("u"),
                           seed=int(t["seed"][0]), position=int(t["position"][0]),
                           coins=word_of("coins", args.get("coins", 0)), noise=t.get("noise"))
            return self.iut.verify_batch(self.panel, batch)
        out, out_len = np.full((n, gamma + 1), -1, "<i4"), np.zeros(n, "<i4")
        for i, state, draft in self.cases(args, t):
            u = self.uniforms(t, i)
            if "u" in t and self.claims.get("rule") != CLAIMS["rule"]["words"]["match"]:
                u = np.concatenate([u[: len(draft)], u[gamma:]])
            tokens = self.iut.verify(self.panel.p[state], self.panel.q[state[:-1]], draft, u)
            out_len[i] = put(out, i, tokens, "verify")
        return out, out_len

    def op_verify_greedy(self, args, t):
        n, gamma = args["n"], args["gamma"]
        out, out_len = np.full((n, gamma + 1), -1, "<i4"), np.zeros(n, "<i4")
        for i, state, draft in self.cases(args, t):
            tokens = self.iut.verify_greedy(self.panel.p_logit[state], draft)
            out_len[i] = put(out, i, tokens, "verify_greedy")
        return out, out_len

    def trees(self, args, t):
        """The steps of a call; a list that is no tree, or a bad token, is refused (TRV-01), and what Tree.fault names."""
        starts, coins = np.cumsum(t["node_count"]) - t["node_count"], word_of("tree_coins", args.get("coins", 0))
        for i, (start, count) in enumerate(zip(starts.tolist(), t["node_count"].tolist())):
            part = slice(start, start + count)
            mine = {name: t[name][part] for name in ("token", "parent", "state", "q_state")}
            maybe = {name: t[name][part] if name in t else None for name in ("parameter", "u", "bonus")}
            each = {name: t[name][i] if name in t else None for name in ("last", "noise")}
            place, wrong = np.arange(count), mine["parent"] >= np.arange(count)
            wrong |= (mine["parent"] < 0) != (place == 0)
            wrong |= (mine["token"] < -1) | (mine["token"] >= self.panel.V) | ((place == 0) & (mine["token"] != -1))
            if wrong.any():
                node = int(wrong.argmax())
                raise BadInput(f"request {i}: node {node} has the token {mine['token'][node]} and the parent "
                               f"{mine['parent'][node]}")
            for name in ("sampling", "draft_sampling"):
                each[name] = of_bits(t[name][t["sampling_of"][i]][None, :])[0] if name in t else None
            tree = Tree(self.panel, rule=word_of("tree_rules", t["rule"][i]), coins=coins,
                        drawn=[word_of("tree_drawn", x) for x in t["drawn"][part]],
                        seed=(int(t["seed"][0]) + i) % 2**64, position=int(t["position"][0]), **mine, **maybe, **each)
            fault = tree.fault()
            if fault:
                raise BadInput(f"request {i}: {fault}")
            yield tree

    def op_verify_tree(self, args, t):
        n, width = args["n"], args["depth"] + 1
        out, out_node, out_len = np.full((n, width), -1, "<i4"), np.full((n, width), -1, "<i4"), np.zeros(n, "<i4")
        answers = self.iut.verify_tree(list(self.trees(args, t)))
        for i, (tokens, nodes) in zip(range(n), answers, strict=True):
            out_len[i] = put(out, i, tokens, "verify_tree")
            put(out_node, i, nodes, "verify_tree (nodes)")
        return out, out_node, out_len

    def op_stream(self, args, t):
        n, k, seed = args["n"], args["k"], int(t["seed"][0])
        answers = (self.iut.stream(self.panel, start, (seed + i) % 2**64, args["gamma"], k, args["eos"])
                   for i, start in enumerate(t["start"].tolist()))
        return streams(answers, n, k, "stream")[:3]

    def op_generate(self, args, t):
        n, k, eos, seed = args["n"], args["k"], args["eos"], int(t["seed"][0])
        prompts = np.split(t["prompt"], np.cumsum(t["prompt_count"]))[:n]
        seeds, sampling = [(seed + i) % 2**64 for i in range(n)], samplings(t)[0]
        more = {"each": self.requests(args, t, sampling, seeds)} if self.claims.get("per_request") else {}
        if hasattr(self.iut, "tell"):
            self.iut.tell = bool(args.get("tell"))
        if self.claims.get("processors"):
            rows = t["processors"].tolist() if "processors" in t else [(1.0, 0.0, 0.0)] * n
            more["processors"] = [Processors(*row) for row in rows]
        if args["method"] == 0:
            answers = self.iut.generate(args["target"], args["draft"] or None, prompts, args["gamma"], k, eos,
                                        sampling, seeds, **more)
        else:
            if self.claims["methods"] & METHODS["ouroboros"]:
                more.update(draft=args["draft"] or None, gamma=args["gamma"])
            answers = self.iut.generate_by(*self.method(args, sampling), args["target"], prompts, k, eos,
                                           sampling, seeds, **more)
        answers = list(answers)
        if len(answers) != n:
            raise ValueError(f"generate answered {len(answers)} of {n} requests")
        return streams(answers, n, k, "generate")[: 4 if args.get("tell") else 3]

    @staticmethod
    def requests(args, t, sampling, seeds):
        """What each request of a call is asked with: its own, where it is told, else the call's (CLM-16)."""
        n, eos = args["n"], [args["eos"]] if args["eos"] >= 0 else []
        words = t.get("samplings")
        own = [sampling] * n if words is None else of_bits(words)
        seeds = t["seeds"].tolist() if "seeds" in t else seeds
        budgets = t["budgets"].tolist() if "budgets" in t else [args["k"]] * n
        ends = [[]] * n
        if "ends" in t:
            ends = [part.tolist() for part in np.split(t["ends"], np.cumsum(t["end_count"]))[:n]]
        return [Record(sampling=s, seed=seed, budget=budget, ends=eos + more)
                for s, seed, budget, more in zip(own, seeds, budgets, ends)]

    def method(self, args, sampling):
        """The method of a request, and its sizes."""
        word, sizes = next((word, {"jacobi": 1, "lookahead": 3, "lookup": 2, "ouroboros": 3}[word])
                           for word, number in METHODS.items() if number == args["method"])
        if not self.claims.get("methods", 0) & METHODS[word]:
            raise Unsupported(f"the method {word} is not claimed")
        if sampling.temperature > 0 and self.claims.get("greedy_methods", 0) & METHODS[word]:
            raise Unsupported(f"the method {word} has no rule above temperature 0")
        return word, tuple(args[f"size_{i}"] for i in range(sizes))

    def op_pool(self, args, t):
        n, V, N, G = (args[name] for name in ("n", "V", "N", "G"))
        kinds = {number: word for word, number in CLAIMS["pools"]["words"].items()}
        for name, ids in (("key", t["key"]), ("token of a value", t["value"][t["insert"] == 1])):
            bad = ids[(ids < 0) | (ids >= V)]
            if bad.size:
                raise BadInput(f"a {name} is {bad.flat[0]}; it must be 0 to {V - 1}")
        pool = self.iut.new_pool(kinds[args["kind"]], V, N, G)
        count, out = np.full(n, -1, "<i4"), np.full((n, G, N - 1), -1, "<i4")
        for i, (insert, key) in enumerate(zip(t["insert"].tolist(), t["key"].tolist())):
            if insert:
                pool.insert(key, tuple(t["value"][i].tolist()))
                continue
            values = list(pool.look_up(key))
            if len(values) > G:
                raise ValueError(f"look_up returned {len(values)} values where at most {G} fit")
            count[i] = len(values)
            out[i, : len(values)] = np.array(values, "<i4").reshape(len(values), N - 1)
        return count, out

    def op_model(self, args, t):
        self.shape = None
        shape = self.iut.load_model(args["folder"], args["sequences"], args["positions"], args["rows"],
                                    args["layout_seed"])
        self.shape = tuple(int(x) for x in shape)
        return (self.shape,)

    def op_forward(self, args, t):
        rows, wants = np.cumsum(t["row_count"])[:-1], np.cumsum(t["want_count"])[:-1]
        shares = list(zip(t["sequence"].tolist(), np.split(t["token"], rows), np.split(t["parent"], rows),
                          np.split(t["want"], wants)))
        logits = [np.asarray(a, "<f4").reshape(len(share[3]), self.shape[0])
                  for a, share in zip(self.iut.forward(shares), shares, strict=True)]
        return (np.concatenate([np.empty((0, self.shape[0]), "<f4"), *logits]),)

    def op_commit(self, args, t):
        paths = np.split(t["path"], np.cumsum(t["path_count"])[:-1])
        return ([self.iut.commit(s, path) for s, path in zip(t["sequence"].tolist(), paths)],)

    def op_truncate(self, args, t):
        return ([self.iut.truncate(s, keep) for s, keep in zip(t["sequence"].tolist(), t["keep"].tolist())],)

    def op_cache_read(self, args, t):
        entries = [self.iut.cache_read(*which) for which in zip(t["sequence"].tolist(), t["layer"].tolist(),
                                                                t["position"].tolist())]
        return [entry[0] for entry in entries], [entry[1] for entry in entries]

    def op_cache_poison(self, args, t):
        self.iut.cache_poison()
        return ()

    def serve(self, op, args, tensors):
        """The tensors of the reply to an operation."""
        if op not in self.claims["ops"].split():
            raise Unsupported(f"there is no operation {op}")
        needs = OPERATIONS[op]["needs"]
        if (needs == "model" and self.shape is None) or (needs == "panel" and self.panel is None):
            raise BadInput(f"no {needs} was loaded")
        due = [row for row in OPERATIONS[op]["reply"] if len(row) == 3 or args.get(row[3])]  # "tell"
        arrays = getattr(self, "op_" + op)(args, tensors)
        return [(name, np.asarray(array, TYPES[kind]).reshape([size_of(x, args) for x in shape]))
                for (name, kind, shape, *_), array in zip(due, arrays, strict=True)]

    def claims_since(self, since):
        """The claims that the suite knows, and `ops` (FRM-08)."""
        known = {name: value for name, value in self.claims.items() if name == "ops" or CLAIMS[name]["since"] <= since}
        for name in set(known) - {"ops"}:
            bits, came = CLAIMS[name].get("later", (0, 0))
            if came > since:
                known[name] &= ~bits
        return known

    def answer(self, header, tensors):
        """The reply to a request: (header, tensors)."""
        reply, version = {"id": header["id"], "status": "ok"}, INTERFACE["frames"]
        try:
            if header.get("frames", version) != version:
                raise Unsupported(f"frames of version {header['frames']}, where {version} is spoken (FRM-07)")
            if header["op"] == "claims":
                return dict(reply, frames=version, args=self.claims_since(header.get("args", {}).get("since", 0))), []
            return reply, self.serve(header["op"], header.get("args", {}), tensors)
        except BadInput as error:
            return dict(reply, status="bad_input", error=shown(error)), []
        except Unsupported as error:
            return dict(reply, status="unsupported", error=shown(error)), []
        except Unavailable as error:
            return dict(reply, status="no_device", error=shown(error)), []
        except MemoryError:
            return dict(reply, status="no_memory", error="out of memory"), []
        except Exception as error:  # the author's code: anything can come
            sys.stderr.write(textwrap.indent(traceback.format_exc(), " "))  # told from what the code wrote
            sys.stderr.flush()
            return dict(reply, status="failed", error=f"{type(error).__name__}: {shown(error)}"), []


def shown(error):
    """What a reply says of it: not too long for a frame, and valid UTF-8."""
    return str(error)[:400].encode("utf-8", "replace").decode()


class Absent:
    """What stands for an implementation whose device is absent: it refuses every request."""

    def __init__(self, error):
        self.error = shown(error)

    def answer(self, header, tensors):
        return {"id": header["id"], "status": "no_device", "error": self.error}, []


class OneFunction:
    def __init__(self, verify):
        self.verify = verify


def serve(implementation, **claims):
    """Answers requests until the end of input. `claims` are those of docs/interface.md. Unless you claim
    otherwise: the token rule, with supplied uniforms, from probabilities, draws by CDF."""
    words = {"uniforms": "supplied", "input": "probs", "map": "cdf", "rule": "token"}
    words.update(claims)
    frames = Frames(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # prints must not fall between the frames: neither what is in the buffer nor what is to come
    sys.stdout.flush()
    if not isinstance(implementation, type) and callable(implementation):
        implementation = OneFunction(implementation)
    try:
        server = Server(implementation() if isinstance(implementation, type) else implementation, words)
    except Unavailable as error:
        server = Absent(error)
    while True:
        try:
            request = frames.read()
        except Exception as error:  # no frame; the author's code is not in it
            sys.exit(f"assay_iut: broken input: {type(error).__name__}: {error}")
        if request is None:
            return
        frames.write(*server.answer(*request))
