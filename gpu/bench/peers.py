#!/usr/bin/env python3
"""The products of bench_gpu in PyTorch, for the side by side: `peers.py [--json FILE]`. Prints a Markdown
table. Where PyTorch or a GPU is missing it says so and ends with code 77."""
import argparse
import json
import statistics
import sys

SHAPES = ((2048, 2048), (4096, 4096), (14336, 4096), (128256, 4096))
ROWS = (1, 2, 4, 8, 16, 32, 64, 120, 128)
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--json")
    ask = parser.parse_args()
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except ImportError:
        absent("it is not installed")
    if not torch.cuda.is_available():
        absent("it finds no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    results = []
    print(f"### PyTorch {torch.__version__} on {torch.cuda.get_device_name()}\n\n"
          "Microseconds of one product. float32 without TF32; bfloat16 is the library's own arithmetic, on\n"
          "tensor cores: other bits.\n\n"
          "| outputs | inputs | weights | rows | eager | graph | least | most |\n"
          "|---:|---:|---|---:|---:|---:|---:|---:|")
    for kind in (torch.float32, torch.bfloat16):
        for outputs, inputs in SHAPES:
            for r in measure(torch, outputs, inputs, kind):
                results.append(r)
                print(f"| {outputs} | {inputs} | {r['weights']} | {r['rows']} | {r['eager_us']:.2f} | "
                      f"{r['graph_us']:.2f} | {r['graph_us_least']:.2f} | {r['graph_us_most']:.2f} |")
            torch.cuda.empty_cache()
    if ask.json:
        with open(ask.json, "w", encoding="utf-8") as file:
            json.dump({"bench": "PyTorch", "version": torch.__version__, "results": results}, file)


if __name__ == "__main__":
    main()
