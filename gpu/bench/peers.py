#!/usr/bin/env python3
"""The products and steps of bench_gpu in PyTorch, for the side by side: `peers.py [--only products|steps]
[--json FILE] [--seconds LIMIT]`. Prints Markdown tables; where results of bench_gpu lie in FILE's folder,
with our times and how many times ours PyTorch takes. Where PyTorch or a GPU is missing it says so and ends
with code 77.

FILE is a whole document after each result. LIMIT (or GPU_PART_SECONDS in the environment): the seconds that it
may take; then it measures less often, ends by itself, with code 124, and before that does not compile.

`peers.py --dry` measures nothing: on the CPU, a step on a cached prefix is compared with one without a cache."""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import sys
import time

SHAPES = ((2048, 2048), (4096, 4096), (14336, 4096), (128256, 4096))
ROWS = (1, 2, 4, 8, 16, 32, 64, 120, 128)
# V, layers, hidden, heads, kv_heads, head_dim, ffn: those of bench_gpu
MODELS = {"1.1B": (32000, 22, 2048, 32, 4, 64, 5632), "8B": (128256, 32, 4096, 32, 8, 128, 14336)}
PREFIX = 512
STEP_ROWS = (1, 8, 32, 128)
COMPILED_ROWS = (1, 8)  # of the smaller model, in binary32, last: compiling takes longer than all else
REPETITIONS, FEW = 25, 3
SETTLE, WARM = 3e5, 2e4  # microseconds of work before clocks have settled, and before each measurement
SET = 1 << 30  # bytes of different weights, so that no cache holds them


class OutOfTime(BaseException):
    """Not an Exception: what PyTorch catches, it does not catch."""


class Clock:
    """The seconds that are left; infinitely many without a limit."""

    def __init__(self, limit):
        self.limit, self.begun = limit, time.monotonic()
        self.shortened = self.timed = 0

    def left(self):
        return self.limit - (time.monotonic() - self.begun) if self.limit else float("inf")

    def check(self):
        if self.left() < (self.limit or 0) / 20:
            raise OutOfTime

    def repetitions(self, us):
        """As many as take a tenth of the time that is left."""
        fit = self.left() / 10 / (us * 1e-6)
        self.timed += 1
        self.shortened += fit < REPETITIONS
        return REPETITIONS if fit >= REPETITIONS else max(FEW, int(fit))

    @contextlib.contextmanager
    def alarm(self):
        """What is in here ends with OutOfTime when there is little time left."""
        def ring(*_):
            raise OutOfTime
        if self.limit:
            signal.signal(signal.SIGALRM, ring)
            signal.setitimer(signal.ITIMER_REAL, max(0.001, self.left() - self.limit / 20))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


class Report:
    """The results, in a file that is a whole document after each of them, and ours beside them."""

    def __init__(self, file, version):
        self.file = pathlib.Path(file) if file else None
        self.document = {"bench": "PyTorch", "version": version, "results": []}
        self.ours_all = list(self.read_ours())
        self.write()

    def read_ours(self):
        for at in sorted(self.file.parent.glob("*.json")) if self.file else ():
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                document = json.loads(at.read_text(encoding="utf-8"))
                if document["bench"] == "Kernels and steps":
                    yield from document["results"]

    def write(self):
        if self.file:
            new = self.file.with_name(self.file.name + ".new")
            new.write_text(json.dumps(self.document), encoding="utf-8")
            new.replace(self.file)

    def add(self, result):
        self.document["results"].append(result)
        self.write()

    def ours(self, **what):
        """Microseconds of ours, from bench_gpu's results; None where there are none."""
        for r in self.ours_all:
            if r.get("products", "ours") == "ours" and all(r.get(k) == v for k, v in what.items()):
                return r.get("us")
        return None


STORAGE = {"float32": "F32", "bfloat16": "BF16"}


def beside(result, ours):
    """The cells of our time and of how many times ours PyTorch takes as a graph."""
    result["ours_us"] = ours
    return "- | -" if ours is None else f"{ours:.2f} | {result['graph_us'] / ours:.3f}"


def absent(why):
    print(f"PyTorch: not run: {why}")
    sys.exit(77)


def once(torch, work):
    """Microseconds of one call."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3


def warm_up(torch, work, least):
    """Calls that do not count: two or more, for so many microseconds; those of the last."""
    calls, total = 0, 0.0
    while calls == 0 or (total < least and calls < 2000):
        last = once(torch, work)
        calls, total = calls + 1, total + last
    return last


def timed(torch, clock, work):
    """Microseconds of one call: median, least, most."""
    clock.check()
    times = [once(torch, work) for _ in range(clock.repetitions(warm_up(torch, work, WARM)))]
    return statistics.median(times), min(times), max(times)


def graph_of(torch, work):
    """The same work as a CUDA graph: without the cost of Python and of launches."""
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def measure(torch, clock, outputs, inputs, kind):
    bytes_of_one = outputs * inputs * torch.finfo(kind).bits // 8
    weights = [torch.randn(outputs, inputs, device="cuda", dtype=kind)
               for _ in range(min(64, max(2, -(-SET // bytes_of_one))))]
    for rows in ROWS:
        x = torch.randn(rows, inputs, device="cuda", dtype=kind)

        def products(x=x):
            for w in weights:
                torch.nn.functional.linear(x, w)

        eager = timed(torch, clock, products)
        graph = timed(torch, clock, graph_of(torch, products))
        n = len(weights)
        yield {"what": "product", "peer": "PyTorch", "weights": str(kind).removeprefix("torch."),
               "outputs": outputs, "inputs": inputs, "rows": rows,
               "eager_us": eager[0] / n, "eager_us_least": eager[1] / n, "eager_us_most": eager[2] / n,
               "graph_us": graph[0] / n, "graph_us_least": graph[1] / n, "graph_us_most": graph[2] / n}


class Model:
    """A transformer of the shapes of bench_gpu; random weights."""

    def __init__(self, torch, shape, kind, device, scale=0.02):
        self.torch = torch
        self.V, self.layers, self.hidden, self.heads, self.kv_heads, self.d, self.ffn = shape
        q, kv = self.heads * self.d, self.kv_heads * self.d

        def some(*size):
            return torch.empty(size, device=device, dtype=kind).normal_(std=scale)

        self.embedding, self.output = some(self.V, self.hidden), some(self.V, self.hidden)
        self.layer = [(some(q + 2 * kv, self.hidden), some(self.hidden, q), some(2 * self.ffn, self.hidden),
                       some(self.hidden, self.ffn)) for _ in range(self.layers)]
        angle = torch.outer(torch.arange(1024.0), 10000.0 ** (-torch.arange(0, self.d, 2) / self.d))
        self.cosine, self.sine = angle.cos().to(device, kind), angle.sin().to(device, kind)

    def norm(self, x):
        return x * self.torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)

    @staticmethod
    def turn(torch, x, cosine, sine):
        """Rotates [heads][rows][d] by the rows' angles."""
        a, b = x.chunk(2, -1)
        return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1)

    def run_layer(self, x, weights, cache, at, mask):
        """x [rows][hidden] after a layer, and its keys and values, those of the cache first."""
        torch, linear = self.torch, self.torch.nn.functional.linear
        qkv, o, gate_up, down = weights
        rows, group = x.shape[0], self.heads // self.kv_heads
        y = linear(self.norm(x), qkv).view(rows, self.heads + 2 * self.kv_heads, self.d).transpose(0, 1)
        q, k, v = y.split((self.heads, self.kv_heads, self.kv_heads))
        cosine, sine = self.cosine[at:at + rows], self.sine[at:at + rows]
        q, k = self.turn(torch, q, cosine, sine), self.turn(torch, k, cosine, sine)
        k, v = torch.cat((cache[0], k), 1), torch.cat((cache[1], v), 1)
        scores = q.reshape(self.kv_heads, group * rows, self.d) @ k.transpose(1, 2) * self.d ** -0.5
        weight = (scores.view(self.kv_heads, group, rows, -1) + mask).softmax(-1)
        seen = weight.view(self.kv_heads, group * rows, -1) @ v
        x = x + linear(seen.view(self.heads, rows, self.d).transpose(0, 1).reshape(rows, -1), o)
        gate, up = linear(self.norm(x), gate_up).chunk(2, -1)
        return x + linear(torch.nn.functional.silu(gate) * up, down), (k, v)

    def step(self, tokens, caches, at, mask, run_layer=None):
        """The logits of a chain on a prefix of `at` positions, and the longer caches."""
        x, after = self.embedding[tokens], []
        for weights, cache in zip(self.layer, caches):
            x, longer = (run_layer or self.run_layer)(x, weights, cache, at, mask)
            after.append(longer)
        return self.torch.nn.functional.linear(self.norm(x), self.output), after

    def caches(self, length):
        def some():
            return self.embedding.new_empty((self.kv_heads, length, self.d)).normal_()
        return [(some(), some()) for _ in range(self.layers)]

    def mask(self, at, rows):
        """0 where a row sees a position."""
        hidden = self.torch.full((rows, at + rows), float("-inf"), device=self.embedding.device)
        return hidden.triu(at + 1).to(self.embedding.dtype)


def step_of(torch, model, rows, caches, run_layer=None):
    tokens = torch.arange(rows, device=model.embedding.device) * 7919 % model.V
    mask = model.mask(PREFIX, rows)
    return lambda: model.step(tokens, caches, PREFIX, mask, run_layer)


def measure_steps(torch, clock, name, kind):
    """Steps of one model, launched by Python and as a graph."""
    size = torch.finfo(kind).bits // 8
    V, layers, hidden, heads, kv_heads, d, ffn = MODELS[name]
    weights = layers * hidden * (2 * heads * d + 2 * kv_heads * d + 3 * ffn) + 2 * V * hidden
    if torch.cuda.mem_get_info()[0] < 1.125 * weights * size + 2e9:
        print(f"| {name} | {kind} | not run: too little memory is unused | | | | | | |")
        return
    model = Model(torch, MODELS[name], kind, "cuda")
    caches = model.caches(PREFIX)
    for rows in STEP_ROWS:
        step = step_of(torch, model, rows, caches)
        eager, graph = timed(torch, clock, step), timed(torch, clock, graph_of(torch, step))
        yield {"what": "step", "peer": "PyTorch", "model": name, "weights": str(kind).removeprefix("torch."),
               "rows": rows, "eager_us": eager[0], "graph_us": graph[0], "graph_us_least": graph[1],
               "graph_us_most": graph[2]}


def measure_compiled(torch, clock, name, rows):
    """A step whose layers torch.compile made, as a graph, in binary32; us None: why it was not run."""
    result = {"what": "compiled step", "peer": "PyTorch", "model": name, "weights": "float32", "rows": rows,
              "graph_us": None}
    try:
        with clock.alarm():
            clock.check()
            model = Model(torch, MODELS[name], torch.float32, "cuda")
            step = step_of(torch, model, rows, model.caches(PREFIX), torch.compile(model.run_layer, dynamic=False))
            step()
            us = timed(torch, clock, graph_of(torch, step))
        result.update(graph_us=us[0], graph_us_least=us[1], graph_us_most=us[2])
    except OutOfTime:
        result["not_run"] = "out of time"
    except Exception as why:  # pylint: disable=broad-exception-caught
        print(f"torch.compile: {type(why).__name__}: {why}", file=sys.stderr)
        result["not_run"] = type(why).__name__
    return result


def check_step(torch):
    """A step on a cached prefix gives what the whole sequence gives without a cache."""
    torch.manual_seed(1)
    model = Model(torch, (40, 2, 24, 4, 2, 8, 36), torch.float32, "cpu", 0.3)
    tokens = torch.arange(11) * 7 % 40
    whole, _ = model.step(tokens, model.caches(0), 0, model.mask(0, 11))
    first, caches = model.step(tokens[:6], model.caches(0), 0, model.mask(0, 6))
    then, _ = model.step(tokens[6:], caches, 6, model.mask(6, 5))
    again = torch.cat((first, then))
    assert whole.shape == (11, 40) and whole.std() > 0.1, "the logits say nothing"
    assert torch.allclose(whole, again, atol=1e-4), f"the cache changes logits by {(whole - again).abs().max()}"
    print("peers.py: dry: a cached step is the whole sequence's")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--json")
    parser.add_argument("--only", choices=("products", "steps"))
    parser.add_argument("--seconds", type=float, default=os.environ.get("GPU_PART_SECONDS"))
    parser.add_argument("--dry", action="store_true")
    ask = parser.parse_args()
    clock = Clock(ask.seconds)
    sys.stdout.reconfigure(line_buffering=True)  # what is killed leaves the lines that it wrote
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except ImportError:
        absent("it is not installed")
    if ask.dry:
        check_step(torch)
        return
    if not torch.cuda.is_available():
        absent("it finds no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"### PyTorch {torch.__version__} on {torch.cuda.get_device_name()}\n\n"
          "Microseconds. float32 without TF32; bfloat16 is the library's own arithmetic, on tensor cores: other\n"
          "bits. ours: the time of ours as a graph, of the same run; x: the graph's, times ours.\n")
    report = Report(ask.json, torch.__version__)
    try:
        with torch.no_grad():
            some = torch.randn(4096, 4096, device="cuda")
            warm_up(torch, lambda: some @ some, SETTLE)
            if ask.only != "steps":
                all_products(torch, clock, report)
            if ask.only != "products":
                all_steps(torch, clock, report)
    except OutOfTime:
        print("\nThe rest was not measured: out of time.")
        report.add({"what": "ended", "why": "out of time"})
        sys.exit(124)
    if clock.shortened:
        print(f"Time was short: {clock.shortened} of {clock.timed} measurements have fewer than {REPETITIONS} "
              "repetitions.")


def all_products(torch, clock, report):
    print("| outputs | inputs | weights | rows | eager | graph | least | most | ours | x |\n"
          "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    for kind in (torch.float32, torch.bfloat16):
        for outputs, inputs in SHAPES:
            for r in measure(torch, clock, outputs, inputs, kind):
                ours = report.ours(what="product", outputs=outputs, inputs=inputs, rows=r["rows"],
                                   storage=STORAGE[r["weights"]])
                print(f"| {outputs} | {inputs} | {r['weights']} | {r['rows']} | {r['eager_us']:.2f} | "
                      f"{r['graph_us']:.2f} | {r['graph_us_least']:.2f} | {r['graph_us_most']:.2f} | "
                      f"{beside(r, ours)} |")
                report.add(r)
            torch.cuda.empty_cache()
    print()


def our_step(report, r):
    return report.ours(what="step", model=r["model"], rows=r["rows"], storage=STORAGE[r["weights"]])


def all_steps(torch, clock, report):
    print(f"Steps of a chain on a prefix of {PREFIX} positions.\n\n"
          "| model | weights | rows | eager | graph | least | most | ours | x |\n"
          "|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in MODELS:
        for kind in (torch.float32, torch.bfloat16):
            for r in measure_steps(torch, clock, name, kind):
                print(f"| {r['model']} | {r['weights']} | {r['rows']} | {r['eager_us']:.1f} | {r['graph_us']:.1f} | "
                      f"{r['graph_us_least']:.1f} | {r['graph_us_most']:.1f} | {beside(r, our_step(report, r))} |")
                report.add(r)
            torch.cuda.empty_cache()
    print("\nThe same, layer by layer by torch.compile, as a graph; at one row x is to be at least 0.90.\n\n"
          "| model | weights | rows | graph | least | most | ours | x |\n|---|---|---:|---:|---:|---:|---:|---:|")
    for rows in COMPILED_ROWS:
        r = measure_compiled(torch, clock, "1.1B", rows)
        if r["graph_us"] is None:
            print(f"| 1.1B | float32 | {rows} | not run: {r['not_run']} | | | | |")
        else:
            print(f"| 1.1B | float32 | {rows} | {r['graph_us']:.1f} | {r['graph_us_least']:.1f} | "
                  f"{r['graph_us_most']:.1f} | {beside(r, our_step(report, r))} |")
        report.add(r)
        torch.cuda.empty_cache()
    print()


if __name__ == "__main__":
    main()
