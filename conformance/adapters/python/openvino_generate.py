#!/usr/bin/env python3
"""Puts OpenVINO GenAI under test on a CPU: `LLMPipeline` with a draft model, and its prompt lookup.

    ci/audit-engines openvino [options of assay run] [-- options of this program]

Models become OpenVINO's own (assay_models.py), of binary32. What the engine computes in is --precision: f32, which is
forced for network and cache, or `own`, the engine's choice for this machine. Where that is a half format, say
`--arithmetic bf16`: the law with drafts is then held against the law without (LAY-19). With --together the requests of a call go to
`ContinuousBatchingPipeline` at once.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut
import assay_models
import numpy as np
import openvino
import openvino_genai

CACHE_GB = 1


class Engine:
    def __init__(self, options):
        self.options = options
        self.pipes = {}  # by models, the last few

    def pipe(self, target, draft, lookup):
        key = target, draft, lookup
        if key not in self.pipes:
            while len(self.pipes) >= 6:
                del self.pipes[next(iter(self.pipes))]
            self.pipes[key] = self.open(*key)
        return self.pipes[key]

    def open(self, target, draft, lookup):
        properties = {"INFERENCE_NUM_THREADS": 1}
        precision = self.options.precision
        if precision != "own":
            properties.update(INFERENCE_PRECISION_HINT=precision, KV_CACHE_PRECISION=precision)
        scheduler, of_all = openvino_genai.SchedulerConfig(), dict(properties)
        scheduler.cache_size = CACHE_GB
        if draft:
            of_all["draft_model"] = openvino_genai.draft_model(assay_models.openvino(draft), "CPU", **properties)
        if lookup:
            of_all["prompt_lookup"] = True
        folder = assay_models.openvino(target)
        if self.options.together:
            return openvino_genai.ContinuousBatchingPipeline(folder, scheduler, "CPU", of_all)
        return openvino_genai.LLMPipeline(folder, "CPU", scheduler_config=scheduler, **of_all)

    def generate(self, target, draft, prompts, gamma, k, eos, sampling, seeds, processors):
        if gamma > 0 and draft is None:
            raise assay_iut.BadInput(f"{gamma} drafts a step, but no draft model")
        drafts = {"num_assistant_tokens": gamma} if gamma > 0 else {}
        return self.all(self.pipe(target, draft if gamma > 0 else None, False), target, prompts, seeds, k, eos,
                        sampling, processors, drafts)

    def generate_by(self, method, sizes, target, prompts, k, eos, sampling, seeds, processors):
        longest, drafts = sizes  # method is "lookup", the one that is claimed
        return self.all(self.pipe(target, None, True), target, prompts, seeds, k, eos, sampling, processors,
                        {"max_ngram_size": longest, "num_assistant_tokens": drafts})

    def all(self, pipe, target, prompts, seeds, k, eos, sampling, processors, drafts):
        V = assay_models.config_of(target)["vocab_size"]
        for prompt in prompts:
            if not ((0 <= prompt) & (prompt < V)).all():
                raise assay_iut.BadInput(f"a token of the prompt is not in 0..{V - 1}")
        settings = [self.settings(V, k, eos, sampling, seed, p, drafts) for seed, p in zip(seeds, processors)]
        ids = [openvino.Tensor(prompt.astype(np.int64)[None]) for prompt in prompts]
        if self.options.together:
            return [(answer.m_generation_ids[0], None) for answer in pipe.generate(ids, settings)]
        return [self.one(pipe, *request) for request in zip(ids, settings)]

    @staticmethod
    def one(pipe, ids, settings):
        mask = openvino.Tensor(np.ones(ids.shape, np.int64))
        answer = pipe.generate(openvino_genai.TokenizedInputs(ids, mask), settings)
        told = answer.extended_perf_metrics
        return answer.tokens[0], told.get_num_accepted_tokens() if told else None

    @staticmethod
    def settings(V, k, eos, sampling, seed, penalties, drafts):
        c = openvino_genai.GenerationConfig(max_new_tokens=k, apply_chat_template=False, **drafts)
        c.ignore_eos = eos < 0
        c.eos_token_id = eos if eos >= 0 else V  # an id that is none: the engine insists on one
        c.stop_token_ids = {c.eos_token_id}
        c.repetition_penalty, c.presence_penalty, c.frequency_penalty = penalties
        if sampling.temperature > 0:
            c.do_sample, c.rng_seed = True, seed % 2**63
            c.temperature, c.top_p, c.min_p = sampling.temperature, sampling.top_p, sampling.min_p
            c.top_k = sampling.top_k or V
        return c


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--precision", default="f32", help="of network and cache: f32, bf16, f16, or own")
    parser.add_argument("--arithmetic", help="that is claimed; else the precision")
    parser.add_argument("--own-weights", action="store_true", help="claimed: nothing is held against the folder's")
    parser.add_argument("--together", action="store_true", help="the requests of a call at once")
    options = parser.parse_args()
    arithmetic = options.arithmetic or options.precision
    if arithmetic == "own":
        parser.error("--precision own needs --arithmetic: say what the engine computes in on this machine")
    assay_iut.serve(Engine(options), name="OpenVINO GenAI", version=openvino_genai.__version__, uniforms="own",
                    rule="token", map="other", arithmetic=arithmetic, input="logits", methods="lookup",
                    lm_architectures="llama", accepted_total=1, max_vocab=assay_models.BYTES,
                    processors="repetition presence frequency",
                    **({"weights": "own"} if options.own_weights else {}))
