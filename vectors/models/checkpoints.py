"""Random checkpoints in the formats that `assay` loads, and some that it must refuse by name.

    python checkpoints.py FOLDER        (needs torch and transformers; see ci/parity-transformers)

Each is written by transformers itself, small (2 layers) and different in one thing. The weights are drawn
large enough that the logits differ by several units, norms are not one and biases not zero, so that nothing
that is left out goes unseen. `refused-*` are models that a loader of the Llama family could mistake for its own.
"""
import json
import os
import sys

import torch
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig,
                          MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)
from transformers.utils import logging

BASE = dict(vocab_size=331, hidden_size=128, intermediate_size=224, num_hidden_layers=2, num_attention_heads=8,
            num_key_value_heads=2, head_dim=16, max_position_embeddings=512, rms_norm_eps=1e-5,
            tie_word_embeddings=True, bos_token_id=329, eos_token_id=330,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 64}

# name: (config class, model class, differences, storage type, what is special)
VARIANTS = {
    "llama": (LlamaConfig, LlamaForCausalLM, {}, torch.float32, "tied, groups of 4 heads"),
    "group1": (LlamaConfig, LlamaForCausalLM, {"num_key_value_heads": 8}, torch.float32, "a KV head a query head"),
    "group8": (LlamaConfig, LlamaForCausalLM, {"num_key_value_heads": 1}, torch.float32, "one KV head"),
    "untied": (LlamaConfig, LlamaForCausalLM, {"tie_word_embeddings": False}, torch.float32, "an output matrix"),
    "head_dim": (LlamaConfig, LlamaForCausalLM, {"hidden_size": 96, "head_dim": 40, "num_attention_heads": 4},
                 torch.float32, "head_dim is not hidden/heads"),
    "llama3": (LlamaConfig, LlamaForCausalLM, {"rope_parameters": LLAMA3, "head_dim": 32, "num_attention_heads": 4},
               torch.float32, "Llama-3 scaling, all three bands"),
    "theta": (LlamaConfig, LlamaForCausalLM, {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0},
                                              "rms_norm_eps": 1e-6}, torch.float32, "theta 500000, eps 1e-6"),
    "bf16": (LlamaConfig, LlamaForCausalLM, {}, torch.bfloat16, "stored in BF16"),
    "f16": (LlamaConfig, LlamaForCausalLM, {}, torch.float16, "stored in F16"),
    "sharded": (LlamaConfig, LlamaForCausalLM, {"tie_word_embeddings": False}, torch.float32, "shards of 256 KB"),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, {"use_sliding_window": False}, torch.float32, "biases on q, k and v"),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 32, "use_sliding_window": False}, torch.float32,
              "norms on q and k"),
    "refused-gpt2": (GPT2Config, GPT2LMHeadModel, None, torch.float32, "another architecture"),
    "refused-mistral": (MistralConfig, MistralForCausalLM, {"sliding_window": 32}, torch.float32, "a sliding window"),
    "refused-qwen2-window": (Qwen2Config, Qwen2ForCausalLM, {"use_sliding_window": True, "sliding_window": 32,
                                                             "max_window_layers": 0}, torch.float32, "a sliding window"),
    "refused-yarn": (LlamaConfig, LlamaForCausalLM,
                     {"rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                                          "original_max_position_embeddings": 128}}, torch.float32, "YaRN scaling"),
    "refused-gelu": (LlamaConfig, LlamaForCausalLM, {"hidden_act": "gelu"}, torch.float32, "GELU, not SiLU"),
    "refused-mlp-bias": (LlamaConfig, LlamaForCausalLM, {"mlp_bias": True}, torch.float32, "biases in the MLP"),
    "refused-attention-bias": (LlamaConfig, LlamaForCausalLM, {"attention_bias": True}, torch.float32,
                               "a bias on the attention's output"),
}


def randomise(model, seed):
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, t in model.named_parameters():
            noise = torch.randn(t.shape, generator=g)
            if t.dim() == 1:
                t.copy_(0.5 * noise if name.endswith("bias") else 1 + 0.25 * noise)
            else:
                t.copy_(noise * (0.3 if "embed" in name or "lm_head" in name else 1.5 * t.shape[-1] ** -0.5))


def old_style(folder):
    """Rewrites a config to the keys of transformers 4, in which most published models are."""
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        config = json.load(f)
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    config["torch_dtype"] = config.pop("dtype")
    with open(path, "w") as f:
        json.dump(config, f, indent=2)


def write(folder):
    logging.disable_progress_bar()
    jobs = [(name, name) for name in VARIANTS] + [("llama3-old-keys", "llama3"), ("qwen2-old-keys", "qwen2")]
    for seed, (name, variant) in enumerate(jobs, start=1):
        config_class, model_class, changes, dtype, _ = VARIANTS[variant]
        config = config_class(vocab_size=331, n_embd=64, n_layer=2, n_head=4, n_positions=512) if changes is None \
            else config_class(**{**BASE, **changes})
        model = model_class(config)
        randomise(model, seed)
        to = os.path.join(folder, name)
        model.to(dtype).save_pretrained(to, max_shard_size="256KB" if name == "sharded" else "1GB")
        if name.endswith("old-keys"):
            old_style(to)
        print("%-24s %s" % (name, VARIANTS[variant][4]))


if __name__ == "__main__":
    write(sys.argv[1])
