#!/usr/bin/env python3
"""Puts assisted generation and prompt lookup of Hugging Face transformers under test: `generate` with
`assistant_model`, and with `prompt_lookup_num_tokens`.

    ci/audit-transformers generate   installs transformers and PyTorch, then audits it

Target and draft model, both caches, the candidates, the acceptance and the stopping are transformers' own;
requests go in one by one, for assisted generation knows no batches. With `--ensemble-weight W` the rule
is relaxed on purpose (an option of transformers); that is not lossless, and serves as the control that must
fail.
"""

import argparse
import os
import sys

import torch
import transformers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut

torch.set_num_threads(1)
torch.set_grad_enabled(False)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


class Engine:
    def __init__(self, weight):
        self.weight = weight
        self.models = {}  # the target and the draft model of the last call

    def model(self, role, folder):
        if role not in self.models or self.models[role].name_or_path != folder:
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
            model.generation_config = transformers.GenerationConfig()  # its own end does not count
            self.models[role] = model
        return self.models[role]

    def generate(self, target, draft, prompts, gamma, k, eos, sampling, seeds):
        model, options = self.model("target", target), {}
        if gamma > 0 and draft is None:
            raise assay_iut.BadInput(f"{gamma} drafts a step, but no draft model")
        if gamma > 0:
            options["assistant_model"] = self.model("draft", draft)
            settings = options["assistant_model"].generation_config  # where generate() looks for them
            settings.num_assistant_tokens = gamma
            settings.num_assistant_tokens_schedule = "constant"
            settings.assistant_confidence_threshold = 0
        return self.all(model, prompts, seeds, self.settings(k, eos, sampling), **options)

    def generate_by(self, method, sizes, target, prompts, k, eos, sampling, seeds):
        settings = self.settings(k, eos, sampling)  # method is "lookup", the one that is claimed
        settings.max_matching_ngram_size, settings.prompt_lookup_num_tokens = sizes
        return self.all(self.model("target", target), prompts, seeds, settings)

    def all(self, model, prompts, seeds, settings, **options):
        return [self.one(model, prompt, seed, generation_config=settings, **options)
                for prompt, seed in zip(prompts, seeds)]

    def settings(self, k, eos, sampling):
        settings = transformers.GenerationConfig(max_new_tokens=k, eos_token_id=None if eos < 0 else eos,
                                                 pad_token_id=0, do_sample=sampling.temperature > 0,
                                                 assistant_ensemble_weight=self.weight)
        if settings.do_sample:
            settings.temperature, settings.top_k, settings.top_p = sampling[:3]
            settings.min_p = sampling.min_p or None
        return settings

    @staticmethod
    def one(model, prompt, seed, **options):
        torch.manual_seed(seed)
        ids = torch.from_numpy(prompt.astype("int64"))[None]
        out = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
        return out[0, ids.shape[1]:].tolist(), None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ensemble-weight", type=float)
    weight = parser.parse_args().ensemble_weight
    assay_iut.serve(Engine(weight), name="transformers.generate", methods="lookup",
                    version=f"transformers {transformers.__version__}, torch {torch.__version__}",
                    uniforms="own", uniform_bits=24, rule="token", map="other",
                    arithmetic="f32", input="logits")
