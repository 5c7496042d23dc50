"""Makes a folder that transformers' AutoModelForCausalLM loads from a training run.

    /usr/bin/python3 export.py target FOLDER target      (FOLDER: the run's, with checkpoint.pt)
    /usr/bin/python3 export.py draft FOLDER draft

The safetensors format is written here, in ten lines, so that training needs nothing but Debian's packages.
"""
import json
import os
import sys

import torch

from network import EPS, THETA
from text import BOS, EOS, VOCABULARY
from train import MODELS


def write_safetensors(path, tensors):
    """8 bytes: length of the header; the header, JSON, padded to 8 bytes; the tensors, binary32."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, t in tensors.items():
        end = offset + 4 * t.numel()
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for t in tensors.values():
            f.write(t.detach().numpy().astype("<f4").tobytes())


def export(kind, folder, to):
    """The weights of FOLDER/checkpoint.pt as a checkpoint folder; the target's in two shards."""
    m = MODELS[kind]
    w = torch.load(os.path.join(folder, "checkpoint.pt"))["weights"]
    os.makedirs(to, exist_ok=True)
    shards = 2 if kind == "target" else 1
    files = ["model.safetensors"] if shards == 1 else ["model-%05d-of-%05d.safetensors" % (i + 1, shards)
                                                       for i in range(shards)]
    where = {}
    for name in w:  # layers in order, embedding first, final norm last
        layer = int(name.split(".")[2]) if "layers" in name else 0 if "embed" in name else m["layers"] - 1
        where[name] = files[layer * shards // m["layers"]]
    for file in files:
        write_safetensors(os.path.join(to, file), {name: w[name] for name in w if where[name] == file})

    def write(name, value):
        with open(os.path.join(to, name), "w") as f:
            f.write(json.dumps(value, indent=2) + "\n")

    if shards > 1:
        size = sum(4 * t.numel() for t in w.values())
        write("model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": where})
    write("generation_config.json", {"bos_token_id": BOS, "eos_token_id": EOS})
    write("config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32",
        "vocab_size": VOCABULARY, "bos_token_id": BOS, "eos_token_id": EOS,
        "hidden_size": m["hidden"], "num_hidden_layers": m["layers"], "intermediate_size": m["ffn"],
        "num_attention_heads": m["heads"], "num_key_value_heads": m["kv"], "head_dim": m["head"],
        "hidden_act": "silu", "rms_norm_eps": EPS, "rope_theta": THETA, "rope_scaling": None,
        "max_position_embeddings": max(context for _, context in m["phases"]),
        "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False})


if __name__ == "__main__":
    export(*sys.argv[1:])
