"""Random checkpoints in the formats that `assay` loads, and some that it must refuse by name.

    python checkpoints.py FOLDER        (needs torch and transformers; see ci/parity-transformers)

Each is written by transformers itself, small (2 layers) and different in one thing. The weights are
drawn large enough that the logits differ by several units, norms are not one and biases not zero, so that
nothing that is left out goes unseen. `refused-*` are models that a loader of the Llama family could
mistake for its own.
"""
import json
import os
import sys

import torch
import transformers
from transformers.utils import logging

BASE = dict(
    vocab_size=331, hidden_size=128, intermediate_size=224, num_hidden_layers=2, num_attention_heads=8,
    num_key_value_heads=2, head_dim=16, max_position_embeddings=512, rms_norm_eps=1e-5,
    tie_word_embeddings=True, bos_token_id=329, eos_token_id=330,
    rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
WIDE = {"head_dim": 32, "num_attention_heads": 4}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 128}
WINDOW = {"use_sliding_window": True, "sliding_window": 32, "max_window_layers": 0}

# name: (family, what differs from BASE, storage, what is special)
F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16
VARIANTS = {
    "llama": ("Llama", {}, F32, "tied, groups of 4 heads"),
    "group1": ("Llama", {"num_key_value_heads": 8}, F32, "a KV head a query head"),
    "group8": ("Llama", {"num_key_value_heads": 1}, F32, "one KV head"),
    "untied": ("Llama", {"tie_word_embeddings": False}, F32, "an output matrix"),
    "head_dim": ("Llama", {"hidden_size": 96, "head_dim": 40, "num_attention_heads": 4}, F32,
                 "head_dim is not hidden/heads"),
    "llama3": ("Llama", {"rope_parameters": LLAMA3, **WIDE}, F32, "Llama-3 scaling, all three bands"),
    "theta": ("Llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0},
                        "rms_norm_eps": 1e-6}, F32, "theta 500000, eps 1e-6"),
    "bf16": ("Llama", {}, BF16, "stored in BF16"),
    "f16": ("Llama", {}, F16, "stored in F16"),
    "sharded": ("Llama", {"tie_word_embeddings": False}, F32, "shards of 256 KB"),
    "qwen2": ("Qwen2", {"use_sliding_window": False}, F32, "biases on q, k and v"),
    "qwen3": ("Qwen3", {"use_sliding_window": False, **WIDE}, F32, "norms on q and k"),
    "llama3-old-keys": ("Llama", {"rope_parameters": LLAMA3, **WIDE}, F32, "config.json of transformers 4"),
    "qwen2-old-keys": ("Qwen2", {"use_sliding_window": False}, F32, "config.json of transformers 4"),
    "refused-gpt2": ("GPT2", None, F32, "another architecture"),
    "refused-mistral": ("Mistral", {"sliding_window": 32}, F32, "a sliding window"),
    "refused-qwen2-window": ("Qwen2", WINDOW, F32, "a sliding window"),
    "refused-yarn": ("Llama", {"rope_parameters": YARN}, F32, "YaRN scaling"),
    "refused-gelu": ("Llama", {"hidden_act": "gelu"}, F32, "GELU, not SiLU"),
    "refused-mlp-bias": ("Llama", {"mlp_bias": True}, F32, "biases in the MLP"),
    "refused-attention-bias": ("Llama", {"attention_bias": True}, F32, "a bias on the attention's output"),
}
GPT2 = dict(vocab_size=331, n_embd=64, n_layer=2, n_head=4, n_positions=512, bos_token_id=329,
            eos_token_id=330)


def randomise(model, seed):
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, t in model.named_parameters():
            noise = torch.randn(t.shape, generator=g)
            if t.dim() == 1:
                t.copy_(0.5 * noise if name.endswith("bias") else 1 + 0.25 * noise)
            else:
                outer = "embed" in name or "lm_head" in name
                t.copy_(noise * (0.3 if outer else 1.5 * t.shape[-1] ** -0.5))


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
    for seed, (name, (family, changes, dtype, what)) in enumerate(VARIANTS.items(), start=1):
        config_class = getattr(transformers, family + "Config")
        model_class = getattr(transformers, family + ("LMHeadModel" if family == "GPT2" else "ForCausalLM"))
        model = model_class(config_class(**(GPT2 if changes is None else {**BASE, **changes})))
        randomise(model, seed)
        to = os.path.join(folder, name)
        model.to(dtype).save_pretrained(to, max_shard_size="256KB" if name == "sharded" else "1GB")
        if name.endswith("old-keys"):
            old_style(to)
        print("%-24s %s" % (name, what))


if __name__ == "__main__":
    write(sys.argv[1])
