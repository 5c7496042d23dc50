"""llama.cpp on a CPU: what its flash attention does to logits in binary32, without the suite; and how an adapter runs
without it.

    build/audit-engines/llamacpp/bin/python docs/audits/llamacpp_attention.py [SCRIPT.py [options]]

Alone: plain decoding of the trained target behind prompts of several lengths, its log-probabilities against those of
the NumPy engine of the examples. With SCRIPT.py, an adapter or a control beside this, that runs with flash attention
off."""

import pathlib
import runpy
import sys

HERE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HERE / "conformance/adapters/python"))
import assay_models
import numpy as np
import xllamacpp
from example_generate import Llama
from openai_http import post

AUTO, OFF = -1, 0  # of llama_flash_attn_type
Params = xllamacpp.CommonParams


def with_attention(kind):
    params = Params()
    params.flash_attn_type = xllamacpp.llama_flash_attn_type(kind)
    return params


def server(folder, kind):
    p, f32 = with_attention(kind), xllamacpp.ggml_type.GGML_TYPE_F32
    p.model.path, p.cache_type_k, p.cache_type_v = assay_models.gguf(folder, "F32"), f32, f32
    p.n_parallel, p.n_ctx, p.cache_prompt, p.verbosity, p.cache_ram_mib = 1, 2048, False, 0, 0
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    p.warmup = p.fit_params = p.ui = False
    return xllamacpp.Server(p)


def show(folder):
    exact, draw = Llama(folder), np.random.default_rng(1)
    prompts = [[256, *draw.integers(32, 127, n).tolist()] for n in (4, 16, 40, 100, 200, 200, 400)]
    for kind in (AUTO, OFF):
        engine, errors = server(folder, kind), []
        for prompt in prompts:
            body = {"prompt": prompt, "n_predict": 1, "temperature": 0, "ignore_eos": True, "samplers": [], "n_probs": 8}
            told = post(engine.listening_address + "/completion", body)["completion_probabilities"][0]["top_logprobs"]
            exact.held = 0
            row = exact.logits(np.array(prompt), 1)[0].astype(float)
            row -= row.max()
            first = told[0]["logprob"]  # of the largest; differences do not depend on the end that is banned
            errors.append(max(abs(t["logprob"] - first - row[t["id"]] + row[told[0]["id"]]) for t in told))
        print("flash attention", "as it comes:" if kind == AUTO else "off:", " ".join(f"{e:.1e}" for e in errors))


if len(sys.argv) < 2:
    show(str(HERE / "vectors/models/target"))
else:
    xllamacpp.CommonParams = lambda: with_attention(OFF)
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
