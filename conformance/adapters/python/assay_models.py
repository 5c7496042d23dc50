"""The suite's models for engines that do not read Hugging Face folders.

    gguf(folder, weights="F32", spare=0) -> file   for llama.cpp; needs the package gguf
    openvino(folder) -> folder            for OpenVINO GenAI; needs the packages openvino and openvino_tokenizers

Both take a Llama model without biases and scaling, as `assay models export` writes it, and keep what they made: the
same folder is converted once. The place is $ASSAY_CACHE, else assay in $XDG_CACHE_HOME or ~/.cache. As a program
it says where that is: `python3 assay_models.py gguf|openvino FOLDER`.

A model of 258 tokens is the trained pair's: token t is byte t, 256 begins and 257 ends a text. In any smaller one,
token t is the letter a + t. Either way a text and its tokens are one to one.

Engines have an end of sequence of their own, and the suite asks for streams without one. So a GGUF file has one token
more, `END`, with a row of zeros: the engine's end. Whoever asks must forbid it (ignore_eos, or a logit bias).
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile

import numpy as np

from example_generate import read_weights

BYTES = 258  # tokens of a model whose tokens are bytes, BOS and EOS
END = "[end]"


def text_of(V, tokens):
    """The tokens as text; ValueError where a token is none of a text's."""
    codes = [t if V == BYTES else ord("a") + t for t in tokens]
    if any(not 0 < c < 128 for c in codes):
        raise ValueError("a token is no ASCII character")
    return "".join(map(chr, codes))


def tokens_of(V, text):
    """The tokens of a text; ValueError where a character is no token."""
    tokens = [ord(c) - (0 if V == BYTES else ord("a")) for c in text]
    if any(not 0 <= t < min(V, 128) for t in tokens):
        raise ValueError("a character is no token of the model")
    return tokens


def config_of(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        c = json.load(file)
    if c["architectures"] != ["LlamaForCausalLM"] or c.get("rope_scaling") or c.get("attention_bias"):
        raise ValueError(f"{folder}: a Llama model without scaling or biases is needed")
    c["head_dim"] = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    return c


# ---- What is kept. ----


def cache_root():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("ASSAY_CACHE") or os.path.join(base, "assay")


fleeting = []  # the folder of what is made of drawn models


def root_for(folder):
    """Where the folder's conversion is kept. A drawn model lies in a folder of the suite's run, and is met once: its
    conversion goes when the program ends."""
    if not os.path.basename(os.path.dirname(os.path.abspath(folder))).startswith("assay-models-"):
        return cache_root()
    fleeting.extend([] if fleeting else [tempfile.TemporaryDirectory(prefix="assay-conversions-")])
    return fleeting[0].name


def kept(folder, kind, name, make):
    """What make(path) writes at a fresh path, kept under the digest of the folder, this file and the kind. A name in
    the cache is whole: it is made beside, then renamed; of two at once the second finds it there."""
    root = root_for(folder)
    digest = hashlib.sha256(kind.encode())
    for path in [os.path.abspath(__file__), *(os.path.join(folder, f) for f in sorted(os.listdir(folder)))]:
        with open(path, "rb") as file:
            data = file.read()
        digest.update(f"{os.path.basename(path)} {len(data)} ".encode() + data)
    whole = os.path.join(root, f"{kind}-{digest.hexdigest()[:32]}")
    if not os.path.exists(whole):
        os.makedirs(root, exist_ok=True)
        part = tempfile.mkdtemp(prefix="part-", dir=root)
        try:
            make(os.path.join(part, name))
            os.rename(part, whole)
        except OSError:
            if not os.path.exists(whole):
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return os.path.join(whole, name)


# ---- GGUF. ----


def byte_letters():
    """What stands for each byte in a vocabulary of type gpt2."""
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    rest = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(rest)) for b in range(256)]


def add_vocabulary(writer, V, TokenType):
    letters = byte_letters() + ["[256]", "[257]"] if V == BYTES else [chr(ord("a") + t) for t in range(V)]
    kinds = [TokenType.CONTROL if len(t) > 1 else TokenType.NORMAL for t in letters] + [TokenType.CONTROL]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(letters + [END])
    writer.add_token_types(kinds)
    writer.add_token_merges([f"{byte_letters()[0xC0]} {byte_letters()[0xC0]}"])  # of bytes that no text has
    writer.add_bos_token_id(256 if V == BYTES else 0)
    writer.add_eos_token_id(V)
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)


def halves_beside(w, heads):
    """Rows of a head in the order of llama.cpp's rotation, which turns neighbours; the folder's turns halves."""
    rows, columns = w.shape
    return w.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_gguf(folder, path, weights, spare):
    import gguf

    c, w, kind = config_of(folder), read_weights(folder), gguf.GGMLQuantizationType[weights]
    block = gguf.GGML_QUANT_SIZES[kind][0]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(c["max_position_embeddings"] + spare)
    writer.add_embedding_length(c["hidden_size"])
    writer.add_block_count(c["num_hidden_layers"])
    writer.add_feed_forward_length(c["intermediate_size"])
    writer.add_head_count(c["num_attention_heads"])
    writer.add_head_count_kv(c["num_key_value_heads"])
    writer.add_key_length(c["head_dim"])
    writer.add_value_length(c["head_dim"])
    writer.add_rope_dimension_count(c["head_dim"])
    writer.add_rope_freq_base(c["rope_theta"])
    writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    writer.add_vocab_size(c["vocab_size"] + 1)
    add_vocabulary(writer, c["vocab_size"], gguf.TokenType)

    def add(name, a):
        if a.ndim == 1 or kind == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(name, a)
            return
        of = kind if a.shape[1] % block == 0 else gguf.GGMLQuantizationType.F16  # as llama.cpp's own converter
        writer.add_tensor(name, gguf.quants.quantize(a, of), raw_dtype=of)

    end = np.zeros((1, c["hidden_size"]), np.float32)
    embedding = w["model.embed_tokens.weight"]
    add("token_embd.weight", np.concatenate([embedding, end]))
    add("output.weight", np.concatenate([embedding if c["tie_word_embeddings"] else w["lm_head.weight"], end]))
    add("output_norm.weight", w["model.norm.weight"])
    for i in range(c["num_hidden_layers"]):
        at, to = f"model.layers.{i}.", f"blk.{i}."
        add(to + "attn_norm.weight", w[at + "input_layernorm.weight"])
        add(to + "ffn_norm.weight", w[at + "post_attention_layernorm.weight"])
        add(to + "attn_q.weight", halves_beside(w[at + "self_attn.q_proj.weight"], c["num_attention_heads"]))
        add(to + "attn_k.weight", halves_beside(w[at + "self_attn.k_proj.weight"], c["num_key_value_heads"]))
        for part, name in (("self_attn.v", "attn_v"), ("self_attn.o", "attn_output"), ("mlp.gate", "ffn_gate"),
                           ("mlp.up", "ffn_up"), ("mlp.down", "ffn_down")):
            add(f"{to}{name}.weight", w[f"{at}{part}_proj.weight"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def gguf(folder, weights="F32", spare=0):
    """The folder's model as a GGUF file; `weights` is a type of GGUF, such as F16, BF16, Q8_0 or Q4_0. It has `spare`
    positions more than the folder says."""
    return kept(folder, f"gguf-{weights}-{spare}", "model.gguf", lambda path: write_gguf(folder, path, weights, spare))


# ---- OpenVINO. ----


def state_concat(op, name, fresh, B, beam, kv_heads, head_dim, assigned):
    """Keys or values of a layer: what the state holds of each sequence, and `fresh` [B, kv_heads, n, head_dim]."""
    from openvino import PartialShape, Type
    from openvino.op.util import Variable, VariableInfo

    info = VariableInfo()
    info.data_shape, info.data_type, info.variable_id = PartialShape([-1, kv_heads, -1, head_dim]), Type.f32, name
    variable = Variable(info)
    empty = op.broadcast(np.float32(0), op.concat([B, np.array([kv_heads, 0, head_dim], np.int64)], 0))
    past = op.gather(op.read_value(empty, variable), beam, np.int64(0))
    both = op.concat([past, fresh], 2)
    assigned.append(op.assign(both, variable))
    return both


def network(folder):
    """The model as OpenVINO's stateful language models are: ids, mask and positions to logits."""
    import openvino as ov
    import openvino.opset13 as op

    c, w = config_of(folder), read_weights(folder)
    heads, kv_heads, D = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    ids, mask, position = (op.parameter([-1, -1], np.int64, name=name)
                           for name in ("input_ids", "attention_mask", "position_ids"))
    beam = op.parameter([-1], np.int32, name="beam_idx")
    ints, assigned = lambda *values: np.array(values, np.int64), []
    B, rows, held = (op.gather(op.shape_of(a), ints(axis), np.int64(0)) for a, axis in ((ids, 0), (ids, 1), (mask, 1)))

    def norm(x, name):
        mean = op.reduce_mean(op.power(x, np.float32(2)), ints(-1), True)
        scaled = op.multiply(x, op.divide(np.float32(1), op.sqrt(op.add(mean, np.float32(c["rms_norm_eps"])))))
        return op.multiply(scaled, w[name])

    def linear(x, name):
        return op.matmul(x, w[name], False, True)

    def split(x, n):
        return op.transpose(op.reshape(x, ints(0, 0, n, D), True), ints(0, 2, 1, 3))

    frequency = c["rope_theta"] ** (-np.arange(0, D, 2) / D)
    angle = np.outer(np.arange(c["max_position_embeddings"]), np.concatenate([frequency, frequency]))
    cos, sin = (op.unsqueeze(op.gather(table.astype(np.float32), op.convert(position, "i32"), np.int64(0)), ints(1))
                for table in (np.cos(angle), np.sin(angle)))  # tables: an angle in a half format would be far off

    def rotate(x):
        a, b = op.split(x, np.int64(-1), 2).outputs()
        return op.add(op.multiply(x, cos), op.multiply(op.concat([op.multiply(b, np.float32(-1)), a], -1), sin))

    def repeat(x):  # each KV head for its group of query heads
        group = heads // kv_heads
        if group == 1:
            return x
        wide = op.broadcast(op.unsqueeze(x, ints(2)), op.concat(
            [B, ints(kv_heads, group), op.gather(op.shape_of(x), ints(2), np.int64(0)), ints(D)], 0), "BIDIRECTIONAL")
        return op.reshape(wide, ints(0, heads, -1, D), True)

    end = op.squeeze(held, ints(0))
    key_at = op.range(np.int64(0), end, np.int64(1), "i64")
    row_at = op.range(op.subtract(end, op.squeeze(rows, ints(0))), end, np.int64(1), "i64")
    seen = op.less_equal(op.unsqueeze(key_at, ints(0)), op.unsqueeze(row_at, ints(1)))
    seen = op.logical_and(seen, op.not_equal(op.unsqueeze(mask, ints(1, 2)), np.int64(0)))
    bias = op.select(seen, np.float32(0), np.float32(np.finfo(np.float32).min))

    x = op.gather(w["model.embed_tokens.weight"], op.convert(ids, "i32"), np.int64(0))
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        h = norm(x, at + "input_layernorm.weight")
        q = rotate(split(linear(h, at + "self_attn.q_proj.weight"), heads))
        k = rotate(split(linear(h, at + "self_attn.k_proj.weight"), kv_heads))
        v = split(linear(h, at + "self_attn.v_proj.weight"), kv_heads)
        k, v = (state_concat(op, f"past_key_values.{i}.{name}present.{i}.{name}", fresh, B, beam, kv_heads, D, assigned)
                for name, fresh in (("key", k), ("value", v)))
        mixed = op.scaled_dot_product_attention(q, repeat(k), repeat(v), bias, np.float32(D**-0.5), causal=False)
        mixed = op.reshape(op.transpose(mixed, ints(0, 2, 1, 3)), ints(0, 0, heads * D), True)
        x = op.add(x, linear(mixed, at + "self_attn.o_proj.weight"))
        h = norm(x, at + "post_attention_layernorm.weight")
        gate = op.swish(linear(h, at + "mlp.gate_proj.weight"))
        x = op.add(x, linear(op.multiply(gate, linear(h, at + "mlp.up_proj.weight")), at + "mlp.down_proj.weight"))
    tied = c["tie_word_embeddings"]
    logits = op.result(linear(norm(x, "model.norm.weight"), "model.embed_tokens.weight" if tied else "lm_head.weight"))
    logits.get_output_tensor(0).set_names({"logits"})
    for parameter in (ids, mask, position, beam):
        parameter.get_output_tensor(0).set_names({parameter.get_friendly_name()})
    return ov.Model([logits], assigned, [ids, mask, position, beam], "llama")


def write_openvino(folder, path):
    import openvino as ov
    import openvino.opset13 as op
    from openvino_tokenizers import build_rwkv_tokenizer

    V = config_of(folder)["vocab_size"]
    os.mkdir(path)
    ov.save_model(network(folder), os.path.join(path, "openvino_model.xml"), compress_to_fp16=False)
    words = [bytes([t]) for t in range(256)]
    if V != BYTES:  # bytes beyond the letters, too: the engine ends by a signal where a text has none of the words
        words.sort(key=lambda word: not 0 <= word[0] - ord("a") < V)
    tokenizer, detokenizer = build_rwkv_tokenizer(f"{t} {word!r} {len(word)}" for t, word in enumerate(words))
    ids = tokenizer.get_results()[0].input_value(0)
    mask = op.result(op.convert(op.greater_equal(ids, np.int64(0)), "i64"))  # of one text: no padding
    mask.get_output_tensor(0).set_names({"attention_mask"})
    tokenizer.add_results([mask])
    ov.save_model(tokenizer, os.path.join(path, "openvino_tokenizer.xml"))
    ov.save_model(detokenizer, os.path.join(path, "openvino_detokenizer.xml"))


def openvino(folder):
    """The folder's model as a folder of OpenVINO GenAI, of binary32, with a tokenizer that the engine insists on."""
    return kept(folder, "openvino", "model", lambda path: write_openvino(folder, path))


if __name__ == "__main__":
    conversions = {"gguf": gguf, "openvino": openvino}
    if len(sys.argv) != 3 or sys.argv[1] not in conversions:
        sys.exit("usage: assay_models.py gguf|openvino FOLDER")
    print(conversions[sys.argv[1]](sys.argv[2]))
