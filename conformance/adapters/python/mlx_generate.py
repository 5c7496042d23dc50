#!/usr/bin/env python3
"""Puts Apple's mlx-lm under test, on a CPU too: `speculative_generate_step` with a draft model, without one
`generate_step`.

    ci/audit-engines mlx [options of assay run] [-- options of this program]

The engine's own sampler has top-p, min-p, top-k, and the temperature last, and so it claims. With --order spec its
filters come in the order of chapter 3 (DIST-12), the temperature first. With --together the requests of a call go to
`BatchGenerator` at once, which has no drafts, and no penalties here. mlx-lm leaves ends to whoever takes its tokens:
here too.
"""

import argparse
import importlib.metadata
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut
import mlx.core as mx
import mlx_lm.generate  # noqa: F401 (the module, which the package hides behind a function of that name)
import mlx_lm.utils
from mlx_lm.sample_utils import (apply_min_p, apply_top_k, apply_top_p, categorical_sampling, make_logits_processors,
                                 make_sampler)
from pathlib import Path

engine = sys.modules["mlx_lm.generate"]


def normal(rows):
    return rows - mx.logsumexp(rows, axis=-1, keepdims=True)


class Engine:
    tell = False  # are log-probabilities asked for? (assay_iut sets it)

    def __init__(self, options):
        self.options = options
        self.models = {}  # the target and the draft model of the last call

    def model(self, role, folder):
        if role not in self.models or self.models[role][0] != folder:
            model, config = mlx_lm.utils.load_model(Path(folder))
            if self.options.arithmetic == "bf16":
                model.set_dtype(mx.bfloat16)
            self.models[role] = folder, model, config["vocab_size"]
        return self.models[role][1:]

    def sampler(self, s):
        if s.temperature == 0:
            return make_sampler(0)
        if self.options.order == "own":
            return make_sampler(s.temperature, s.top_p if s.top_p < 1 else 0, s.min_p, top_k=s.top_k)
        parts = [(s.top_k > 0, apply_top_k, s.top_k), (s.top_p < 1, apply_top_p, s.top_p),
                 (s.min_p > 0, apply_min_p, s.min_p)]

        def sampler(logprobs):
            rows = normal(logprobs / s.temperature)
            for wanted, part, value in parts:
                rows = normal(part(rows, value)) if wanted else rows
            return categorical_sampling(rows, 1)

        return sampler

    @staticmethod
    def processors(p):
        if p is None:
            return None
        repetition = p.repetition if p.repetition != 1 else None
        return make_logits_processors(repetition_penalty=repetition, presence_penalty=p.presence,
                                      frequency_penalty=p.frequency) or None

    def generate(self, target, draft, prompts, gamma, k, eos, sampling, seeds, processors=None):
        model, V = self.model("target", target)
        for prompt in prompts:
            if not ((0 <= prompt) & (prompt < V)).all():
                raise assay_iut.BadInput(f"a token of the prompt is not in 0..{V - 1}")
        if gamma > 0 and draft is None:
            raise assay_iut.BadInput(f"{gamma} drafts a step, but no draft model")
        if gamma == 0 and self.options.together:
            return self.all(model, prompts, k, eos, sampling, seeds)
        drafts = {"draft_model": self.model("draft", draft)[0], "num_draft_tokens": gamma} if gamma > 0 else {}
        return [self.one(model, mx.array(prompt), k, eos, self.sampler(sampling), seed, drafts, self.processors(p))
                for prompt, seed, p in zip(prompts, seeds, processors or [None] * len(prompts))]

    def one(self, model, prompt, k, eos, sampler, seed, drafts, processors):
        mx.random.seed(seed)
        step, out, accepted = engine.speculative_generate_step if drafts else engine.generate_step, [], 0
        told = []
        for token, row, *of_draft in step(prompt, model, max_tokens=k, sampler=sampler, logits_processors=processors,
                                        **drafts):
            out.append(int(token))
            if self.tell:
                told.append(float(row[out[-1]]))
            accepted += any(of_draft)
            if out[-1] == eos:
                break
        return (out, accepted, told) if self.tell else (out, accepted)

    def all(self, model, prompts, k, eos, sampling, seeds):
        mx.random.seed(seeds[0])
        batch = engine.BatchGenerator(model, max_tokens=k, stop_tokens=[[eos]] if eos >= 0 else None,
                                      sampler=self.sampler(sampling))
        places = {uid: i for i, uid in enumerate(batch.insert([prompt.tolist() for prompt in prompts]))}
        out = [[] for _ in prompts]
        while responses := batch.next_generated():
            for response in responses:
                out[places[response.uid]].append(int(response.token))
        batch.close()
        return [(tokens, 0) for tokens in out]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--order", choices=["spec", "own"], default="own", help="of temperature and filters")
    parser.add_argument("--arithmetic", choices=["f32", "bf16"], default="f32", help="of the weights, and so of all")
    parser.add_argument("--together", action="store_true", help="the requests of a call at once, without drafts")
    options = parser.parse_args()
    versions = " ".join(f"{name} {importlib.metadata.version(name)}" for name in ("mlx-lm", "mlx"))
    assay_iut.serve(Engine(options), name="mlx-lm", version=versions, uniforms="own", rule="match", map="other",
                    arithmetic=options.arithmetic, input="logits", lm_architectures="llama", accepted_total=1,
                    **({"order": "mlx"} if options.order == "own" else {}),
                    **({"logprobs": "raw"} if options.arithmetic == "f32" and not options.together else {}),
                    **({} if options.together else {"processors": "repetition presence frequency"}))
