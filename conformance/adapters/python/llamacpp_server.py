#!/usr/bin/env python3
"""Puts llama.cpp's server under test: speculative decoding with a draft model, and n-gram drafts as prompt lookup. The
server runs in this process (package xllamacpp) and is asked over HTTP, with ids.

    ci/audit-engines llamacpp [options of assay run] [-- options of this program]

Models become GGUF files (assay_models.py), of binary32 unless --weights says otherwise; their one further token, the
engine's own end, is banned by `ignore_eos`. The server knows drafts a step only from its start, so each number has a
server. It tells its accepted drafts as a total. `--synthetic L` makes it take L tokens a step whatever the target
says, an option of llama.cpp for timings: the control that must fail. Flash attention, which llama.cpp chooses by
itself, is coarser than binary32: with `--flash-attention auto` the claim is f16. With drafts the server loses tokens
at the end of a full context, which fails `engine.models`; `--spare-position` keeps contexts from being full.

The server tells no log-probability of a stop, nor of a token that came in a step with drafts. Such tokens are asked for
again, one by one, from the last to the first, in the cache that the stream left. Each of these requests drops the
cache's end and adds one row, so what a rejection left in the rows before is still there.
"""

import argparse
import concurrent.futures
import math
import os
import queue
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut
import assay_models
import xllamacpp
from openai_http import post

POSITIONS = 2048
FLASH = {"auto": -1, "off": 0}  # of llama_flash_attn_type
ORDERS = {"temperature-first": ["temperature", "top_k", "top_p", "min_p"],  # chapter 3 (DIST-12)
          "temperature-last": ["top_k", "top_p", "min_p", "temperature"]}   # llama.cpp's own


def kind_of(name):
    return getattr(xllamacpp.ggml_type, "GGML_TYPE_" + name)


def raw(told, V, token):
    """A token's log-probability without the engine's end, which takes part in the server's softmax."""
    row = {entry["id"]: entry["logprob"] for entry in told["top_logprobs"]}
    return row[token] - math.log1p(-math.exp(row[V]))


class Engine:
    tell = False  # are log-probabilities asked for? (assay_iut sets it)

    def __init__(self, options):
        self.options = options
        self.servers = {}  # by models and drafts, the last few

    def server(self, target, draft, drafts, ngram=0):
        key = target, draft, drafts, ngram
        if key not in self.servers:
            while len(self.servers) >= 12:
                del self.servers[next(iter(self.servers))]
            self.servers[key] = self.start(*key)
        return self.servers[key].listening_address + "/completion"

    def start(self, target, draft, drafts, ngram):
        o, p, types = self.options, xllamacpp.CommonParams(), xllamacpp.common_speculative_type
        p.model.path = assay_models.gguf(target, o.weights, o.spare_position)
        p.cache_type_k = p.cache_type_v = kind_of(o.cache)
        p.flash_attn_type = xllamacpp.llama_flash_attn_type(FLASH[o.flash_attention])
        p.n_parallel, p.n_ctx, p.cache_prompt = o.slots, POSITIONS * o.slots, o.prompt_cache
        p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
        p.warmup = p.fit_params = p.ui = False
        p.verbosity, p.cache_ram_mib = 0, 0
        p.speculative.synth_len = o.synthetic if drafts else -1
        if draft:
            d = p.speculative.draft
            p.speculative.types = [types.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
            d.mparams.path = assay_models.gguf(draft, o.weights, o.spare_position)
            d.cache_type_k = d.cache_type_v = kind_of(o.cache)
            d.n_max, d.probabilistic = drafts, o.rejection
        if ngram:
            p.speculative.types = [types.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
            p.speculative.ngram_simple.size_n, p.speculative.ngram_simple.size_m = ngram, drafts
        return xllamacpp.Server(p)

    def generate(self, target, draft, prompts, gamma, k, eos, sampling, seeds, processors):
        if gamma > 0 and draft is None:
            raise assay_iut.BadInput(f"{gamma} drafts a step, but no draft model")
        url = self.server(target, draft if gamma > 0 else None, gamma)
        return self.all(url, target, prompts, k, eos, sampling, seeds, processors)

    def generate_by(self, method, sizes, target, prompts, k, eos, sampling, seeds, processors):
        longest, drafts = sizes  # method is "lookup", the one that is claimed
        url = self.server(target, None, drafts, max(1, longest - 1))  # it looks for this length alone
        return self.all(url, target, prompts, k, eos, sampling, seeds, processors)

    def all(self, url, target, prompts, k, eos, sampling, seeds, processors):
        V = assay_models.config_of(target)["vocab_size"]
        for prompt in prompts:
            if not ((0 <= prompt) & (prompt < V)).all():
                raise assay_iut.BadInput(f"a token of the prompt is not in 0..{V - 1}")
        free = queue.SimpleQueue()
        for slot in range(self.options.slots):
            free.put(slot)

        def one(prompt, seed, penalties):
            body = self.body(V, prompt.tolist(), k, eos, sampling, seed, penalties)
            if not self.tell:
                return self.answer(post(url, body))
            slot = free.get()
            try:
                return self.told(url, V, body | {"n_probs": V + 1, "id_slot": slot})
            finally:
                free.put(slot)

        with concurrent.futures.ThreadPoolExecutor(self.options.slots) as pool:
            return list(pool.map(one, prompts, seeds, processors))

    def body(self, V, prompt, k, eos, sampling, seed, penalties):
        body = {"prompt": prompt, "n_predict": k, "seed": seed % (2**32 - 1), "ignore_eos": True,
                "return_tokens": True, "cache_prompt": self.options.prompt_cache, "temperature": sampling.temperature,
                "top_k": sampling.top_k, "top_p": sampling.top_p, "min_p": sampling.min_p,
                "samplers": ORDERS[self.options.order]}
        if penalties != (1, 0, 0):
            body.update(samplers=["penalties", *ORDERS[self.options.order]], repeat_last_n=POSITIONS,
                        repeat_penalty=penalties.repetition, presence_penalty=penalties.presence,
                        frequency_penalty=penalties.frequency)
        if eos >= 0:
            body["stop"] = [assay_models.text_of(V, [eos])]
        return body

    @staticmethod
    def answer(said):
        return said["tokens"], said["timings"].get("draft_n_accepted", 0)

    def told(self, url, V, body):
        """An answer with log-probabilities. The server tells none of a token that is a stop."""
        said = post(url, body)
        tokens, told = said["tokens"], said.get("completion_probabilities", [])
        told += [{"top_logprobs": []}] * (len(tokens) - len(told))
        for t in reversed(range(len(tokens))):
            if not told[t]["top_logprobs"]:
                again = body | {"prompt": body["prompt"] + tokens[:t], "n_predict": 1, "cache_prompt": True, "stop": []}
                told[t] = post(url, again)["completion_probabilities"][0]
        return *self.answer(said), [raw(entry, V, token) for entry, token in zip(told, tokens)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", default="F32", help="F32, F16, BF16, Q8_0, Q4_0 ...")
    parser.add_argument("--cache", default="F32", help="of keys and values: F32, F16 ...")
    parser.add_argument("--rejection", action="store_true", help="drafts are drawn, and judged by the token rule")
    parser.add_argument("--order", choices=ORDERS, default="temperature-last", help="of the filters")
    parser.add_argument("--slots", type=int, default=1, help="requests at once")
    parser.add_argument("--prompt-cache", action="store_true")
    parser.add_argument("--flash-attention", choices=FLASH, default="off", help="llama.cpp's own choice is auto")
    parser.add_argument("--spare-position", action="store_true", help="contexts have one more than the models' folders")
    parser.add_argument("--synthetic", type=float, default=-1, metavar="L", help="the control that must fail")
    options = parser.parse_args()
    exact = options.weights == options.cache == "F32" and options.flash_attention == "off"
    arithmetic = "f32" if exact else "bf16" if "BF16" in (options.weights, options.cache) else "f16"
    claims = {"order": "llamacpp"} if options.order == "temperature-last" else {}
    if "Q" in options.weights:
        claims["weights"] = "own"
    assay_iut.serve(Engine(options), name="llama.cpp server", version=f"xllamacpp {xllamacpp.__version__}",
                    uniforms="own", rule="token" if options.rejection else "match", map="other",
                    arithmetic=arithmetic, input="logits", methods="lookup", lm_architectures="llama",
                    accepted_total=1, max_vocab=assay_models.BYTES, logprobs="raw",
                    processors="repetition presence frequency", **claims)
