#!/usr/bin/env python3
"""The products and steps of bench_gpu in PyTorch, for the side by side: `peers.py [--only products|steps]
[--json FILE]`. Prints Markdown tables. Where PyTorch or a GPU is missing it says so and ends with code 77.

`peers.py --dry` measures nothing: on the CPU, a step on a cached prefix is compared with one without a cache."""
import argparse
import json
import statistics
import sys

SHAPES = ((2048, 2048), (4096, 4096), (14336, 4096), (128256, 4096))
ROWS = (1, 2, 4, 8, 16, 32, 64, 120, 128)
# V, layers, hidden, heads, kv_heads, head_dim, ffn: those of bench_gpu
MODELS = {"1.1B": (32000, 22, 2048, 32, 4, 64, 5632), "8B": (128256, 32, 4096, 32, 8, 128, 14336)}
PREFIX = 512
STEP_ROWS = (1, 8, 32, 128)
COMPILED_ROWS = (1, 8)  # in binary32 alone: compiling takes longer than all else
REPETITIONS = 25
SET = 1 << 30  # bytes of different weights, so that no cache holds them


def absent(why):
    print(f"PyTorch: not run: {why}")
    sys.exit(77)


def timed(torch, work):
    """Microseconds of one call: median, least, most."""
    times = []
    for i in range(REPETITIONS + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times), min(times), max(times)


def graph_of(torch, work):
    """The same work as a CUDA graph: without the cost of Python and of launches."""
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def measure(torch, outputs, inputs, kind):
    bytes_of_one = outputs * inputs * torch.finfo(kind).bits // 8
    weights = [torch.randn(outputs, inputs, device="cuda", dtype=kind)
               for _ in range(min(64, max(2, -(-SET // bytes_of_one))))]
    for rows in ROWS:
        x = torch.randn(rows, inputs, device="cuda", dtype=kind)

        def products(x=x):
            for w in weights:
                torch.nn.functional.linear(x, w)

        eager = timed(torch, products)
        graph = timed(torch, graph_of(torch, products))
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


def measure_steps(torch, name, kind):
    """Steps of one model, in each way that PyTorch has."""
    size = torch.finfo(kind).bits // 8
    V, layers, hidden, heads, kv_heads, d, ffn = MODELS[name]
    weights = layers * hidden * (2 * heads * d + 2 * kv_heads * d + 3 * ffn) + 2 * V * hidden
    if torch.cuda.mem_get_info()[0] < 1.125 * weights * size + 2e9:
        print(f"| {name} | {kind} | not run: too little memory is unused | | | | | |")
        return
    model = Model(torch, MODELS[name], kind, "cuda")
    caches = model.caches(PREFIX)
    for rows in STEP_ROWS:
        step = step_of(torch, model, rows, caches)
        eager, graph = timed(torch, step), timed(torch, graph_of(torch, step))
        result = {"what": "step", "peer": "PyTorch", "model": name, "weights": str(kind).removeprefix("torch."),
                  "rows": rows, "eager_us": eager[0], "graph_us": graph[0], "graph_us_least": graph[1],
                  "graph_us_most": graph[2], "compiled_us": None}
        if rows in COMPILED_ROWS and kind == torch.float32:
            try:
                compiled = step_of(torch, model, rows, caches, torch.compile(model.run_layer, dynamic=False))
                compiled()
                result["compiled_us"] = timed(torch, graph_of(torch, compiled))[0]
            except Exception as why:  # pylint: disable=broad-exception-caught
                print(f"torch.compile: not run: {type(why).__name__}: {why}", file=sys.stderr)
        yield result


def print_step(r):
    compiled = "-" if r["compiled_us"] is None else f"{r['compiled_us']:.1f}"
    print(f"| {r['model']} | {r['weights']} | {r['rows']} | {r['eager_us']:.1f} | {r['graph_us']:.1f} | "
          f"{r['graph_us_least']:.1f} | {r['graph_us_most']:.1f} | {compiled} |")


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
    parser.add_argument("--dry", action="store_true")
    ask = parser.parse_args()
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
          "bits.\n")
    results = []
    with torch.no_grad():
        if ask.only != "steps":
            all_products(torch, results)
        if ask.only != "products":
            all_steps(torch, results)
    if ask.json:
        with open(ask.json, "w", encoding="utf-8") as file:
            json.dump({"bench": "PyTorch", "version": torch.__version__, "results": results}, file)


def all_products(torch, results):
    print("| outputs | inputs | weights | rows | eager | graph | least | most |\n"
          "|---:|---:|---|---:|---:|---:|---:|---:|")
    for kind in (torch.float32, torch.bfloat16):
        for outputs, inputs in SHAPES:
            for r in measure(torch, outputs, inputs, kind):
                results.append(r)
                print(f"| {outputs} | {inputs} | {r['weights']} | {r['rows']} | {r['eager_us']:.2f} | "
                      f"{r['graph_us']:.2f} | {r['graph_us_least']:.2f} | {r['graph_us_most']:.2f} |")
            torch.cuda.empty_cache()
    print()


def all_steps(torch, results):
    print(f"Steps of a chain on a prefix of {PREFIX} positions; compiled: layer by layer, as a graph.\n\n"
          "| model | weights | rows | eager | graph | least | most | compiled |\n"
          "|---|---|---:|---:|---:|---:|---:|---:|")
    for name in MODELS:
        for kind in (torch.float32, torch.bfloat16):
            for r in measure_steps(torch, name, kind):
                results.append(r)
                print_step(r)
            torch.cuda.empty_cache()
    print()


if __name__ == "__main__":
    main()
