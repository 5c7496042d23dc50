#!/usr/bin/env python3
"""Puts assisted generation and prompt lookup of Hugging Face transformers under test: `generate` with
`assistant_model`, and with `prompt_lookup_num_tokens`.

    ci/audit-engines transformers [options of assay run] [-- options of this program]

Target and draft model, both caches, the candidates, the acceptance and the stopping are transformers' own;
requests go in one by one, for assisted generation knows no batches. With `--ensemble-weight W` the rule
is relaxed on purpose (an option of transformers); that is not lossless, and serves as the control that must
fail.

With --universal drafts take the path for a draft model of another tokenizer: its own has one token more, which no text
has. --ascending mends transformers' table of common tokens for it (docs/audits/transformers-generate.md). With
--early-exit N the first N layers of the target are the draft model.
"""

import argparse
import os
import sys

import tokenizers
import torch
import transformers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut
import assay_models
from transformers.generation.candidate_generator import AssistantToTargetTranslator

torch.set_num_threads(1)
torch.set_grad_enabled(False)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def tokenizer_of(V, more=(), first=False):
    """One whose tokens are single characters: letters of few tokens, else those of bytes, BOS and EOS. The tokens
    `more` come behind them, or before."""
    letters = [chr(t) for t in range(256)] if V == assay_models.BYTES else [chr(ord("a") + t) for t in range(V)]
    marks = ["[256]", "[257]"] if V == assay_models.BYTES else []
    words = [*more, *letters, *marks] if first else [*letters, *marks, *more]
    vocabulary = {word: t for t, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, letters[0]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("."), "isolated")
    tokenizer.decoder = tokenizers.decoders.Fuse()
    tokenizer.add_special_tokens([*marks, *more])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)


def ascending():
    """Makes transformers' table of common tokens ascend by the draft's ids, as the columns of q do. Its own follows
    get_vocab(), the order of a hash map."""
    translator = AssistantToTargetTranslator
    own = translator._get_assistant_to_target_input_ids

    def ordered(self):
        to_target, to_draft = own(self)
        return to_target, dict(sorted(to_draft.items(), key=lambda item: item[1]))

    translator._get_assistant_to_target_input_ids = ordered


class Engine:
    tell = False  # are log-probabilities asked for? (assay_iut sets it)

    def __init__(self, options):
        self.weight, self.universal, self.early_exit = options.ensemble_weight, options.universal, options.early_exit
        self.models = {}  # the target and the draft model of the last call
        self.tokenizers = {}  # a pair for each draft model by role: transformers prunes a head once for a pair

    def model(self, role, folder):
        if role not in self.models or self.models[role].name_or_path != folder:
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
            model.generation_config = transformers.GenerationConfig()  # its own end does not count
            if self.universal and role != "target":
                V = model.config.vocab_size
                self.tokenizers[role] = tokenizer_of(V), tokenizer_of(V, ["[more]"])
                model.resize_token_embeddings(V + 1, mean_resizing=False)
            self.models[role] = model
        return self.models[role]

    def generate(self, target, draft, prompts, gamma, k, eos, sampling, seeds, processors):
        model, options = self.model("target", target), {}
        if gamma > 0 and draft is None:
            raise assay_iut.BadInput(f"{gamma} drafts a step, but no draft model")
        settings = self.settings(k, eos, sampling)
        if gamma > 0 and self.early_exit:
            settings.assistant_early_exit = self.early_exit
            self.speculate(settings, gamma)
            self.speculate(model.generation_config, gamma)
        elif gamma > 0:
            role = "sampled draft" if self.universal and settings.do_sample else "draft"  # sampling prunes its head
            options["assistant_model"] = self.model(role, draft)
            self.speculate(options["assistant_model"].generation_config, gamma)  # where generate() looks for them
            if self.universal:
                options["tokenizer"], options["assistant_tokenizer"] = self.tokenizers[role]
        return self.all(model, prompts, seeds, processors, settings, **options)

    @staticmethod
    def speculate(settings, gamma):
        settings.num_assistant_tokens = gamma
        settings.num_assistant_tokens_schedule = "constant"
        settings.assistant_confidence_threshold = 0

    def generate_by(self, method, sizes, target, prompts, k, eos, sampling, seeds, processors):
        settings = self.settings(k, eos, sampling)  # method is "lookup", the one that is claimed
        settings.max_matching_ngram_size, settings.prompt_lookup_num_tokens = sizes
        return self.all(self.model("target", target), prompts, seeds, processors, settings)

    def all(self, model, prompts, seeds, processors, settings, **options):
        answers = []
        for prompt, seed, p in zip(prompts, seeds, processors):
            settings.repetition_penalty = p.repetition
            answers.append(self.one(model, prompt, seed, generation_config=settings, **options))
        return answers

    def settings(self, k, eos, sampling):
        settings = transformers.GenerationConfig(max_new_tokens=k, eos_token_id=None if eos < 0 else eos,
                                                 pad_token_id=0, do_sample=sampling.temperature > 0,
                                                 assistant_ensemble_weight=self.weight)
        if settings.do_sample:
            settings.temperature, settings.top_k, settings.top_p = sampling[:3]
            settings.min_p = sampling.min_p or None
        return settings

    def one(self, model, prompt, seed, **options):
        torch.manual_seed(seed)
        ids = torch.from_numpy(prompt.astype("int64"))[None]
        out = model.generate(ids, attention_mask=torch.ones_like(ids), return_dict_in_generate=True,
                             output_logits=self.tell, **options)
        tokens = out.sequences[0, ids.shape[1]:].tolist()
        if not self.tell:
            return tokens, None
        return tokens, None, [row[0].log_softmax(-1)[token].item() for row, token in zip(out.logits, tokens)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ensemble-weight", type=float, metavar="W", help="the control that must fail")
    parser.add_argument("--universal", action="store_true", help="a draft model of another tokenizer")
    parser.add_argument("--ascending", action="store_true", help="with --universal: its table of tokens in order")
    parser.add_argument("--early-exit", type=int, default=0, metavar="N", help="drafts by the target's first layers")
    given = parser.parse_args()
    if given.ascending:
        ascending()
    # Tokens that are letters, and layers that can be left out.
    models = "exported" if given.universal or given.early_exit else "any"
    assay_iut.serve(Engine(given), name="transformers.generate", methods="lookup", models=models,
                    version=f"transformers {transformers.__version__}, torch {torch.__version__}",
                    uniforms="own", uniform_bits=24, rule="token", map="other",
                    arithmetic="f32", input="logits", top_k_ties="kept", processors="repetition",
                    **({"logprobs": "raw"} if models == "any" else {}))
