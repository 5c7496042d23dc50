#!/usr/bin/env python3
"""Puts ONNX Runtime GenAI under test, on a CPU: drafts of a model, and its n-gram drafts as prompt lookup.

    assay models export FOLDER
    python docs/audits/onnx_generate.py convert FOLDER      by the engine's own model builder
    assay run --only 'engine.*' --level smoke --iut exec:"python docs/audits/onnx_generate.py FOLDER"

Needs onnxruntime-genai 0.18.0, onnx 1.23.2, onnx-ir 1.1.0, transformers 5.23.0 and torch 2.15.0, of which the last two
are for `convert`. The engine insists on an end of sequence: a converted model gets one token more, whose logit is
-1e9, and that is its end and its padding unless a request has an end. The engine keeps an end out of its tokens; here
it is put behind them. There is no min-p: such requests are refused.

--padding ID and --hotter F are controls: the builder's padding, and a temperature that is wrong by F with drafts.
"""

import argparse
import atexit
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance/adapters/python"))
import assay_iut
import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnxruntime_genai as og

NAMES = ["few", "fewer", "target", "draft"]


def convert(folder):
    from transformers_generate import tokenizer_of  # the builder wants a tokenizer beside the weights

    builder = pathlib.Path(og.__file__).parent / "models"
    for name in NAMES:
        config = json.loads((folder / name / "config.json").read_text())
        tokenizer_of(config["vocab_size"]).save_pretrained(folder / name)
        subprocess.run([sys.executable, "builder.py", "-i", folder / name, "-o", folder / (name + ".onnx"),
                        "-p", "fp32", "-e", "cpu", "-c", folder / "cache"], cwd=builder, check=True)


def wider(folder, to):
    """A copy of a converted model with one token more, which is never drawn."""
    shutil.copytree(folder, to)
    model = onnx.load(to / "model.onnx", load_external_data=False)
    (logits,) = (out for out in model.graph.output if out.name == "logits")
    for node in model.graph.node:
        node.output[:] = ["narrow" if name == "logits" else name for name in node.output]
    for name, value in (("more", np.array([0, 0, 0, 0, 0, 1])), ("never", np.float32(-1e9))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    model.graph.node.append(onnx.helper.make_node("Pad", ["narrow", "more", "never"], ["logits"]))
    logits.type.tensor_type.shape.dim[2].dim_value += 1
    onnx.save(model, to / "model.onnx")


def weights_of(folder):
    """A digest: the suite names other folders than FOLDER, with the same weights."""
    digest = hashlib.sha256()
    for file in sorted(pathlib.Path(folder).glob("*.safetensors")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Engine:
    def __init__(self, options):
        self.options = options
        self.converted = {weights_of(options.folder / name): options.folder / (name + ".onnx") for name in NAMES}
        self.models = {}  # with their V, by folders and end
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="assay-onnx-"))
        atexit.register(shutil.rmtree, self.root, True)

    def block(self, role, folder, place):
        """The engine's settings for one of the two models, which it wants below its own folder."""
        made = self.converted.get(weights_of(folder))
        if made is None:
            raise assay_iut.Unsupported(f"{folder} was not converted")
        wider(made, place / role)
        config = json.loads((made / "genai_config.json").read_text())
        block = config["model"]["decoder"]
        block["filename"] = f"{role}/model.onnx"
        block["session_options"].update(intra_op_num_threads=1, inter_op_num_threads=1)
        return config, block

    def model(self, target, draft, eos):
        key = target, draft, eos
        if key not in self.models:
            place = self.root / str(len(self.models))
            config, _ = self.block("target", target, place)
            m = config["model"]
            if draft:
                m["draft"] = self.block("draft", draft, place)[1]
            V = m["vocab_size"]
            m["vocab_size"], m["eos_token_id"] = V + 1, eos if eos >= 0 else V
            m["pad_token_id"] = V if self.options.padding is None else self.options.padding
            (place / "genai_config.json").write_text(json.dumps(config))
            self.models[key] = og.Model(str(place)), V
        return self.models[key]

    def generate(self, target, draft, prompts, gamma, k, eos, sampling, seeds):
        if gamma > 0 and draft is None:
            raise assay_iut.BadInput(f"{gamma} drafts a step, but no draft model")
        drafts = {"max_draft_tokens": gamma} if gamma > 0 else {}
        return self.all(target, draft if gamma > 0 else None, drafts, prompts, k, eos, sampling, seeds)

    def generate_by(self, method, sizes, target, prompts, k, eos, sampling, seeds):
        drafts = {"ngram_size": sizes[0] + 1, "max_draft_tokens": sizes[1]}  # the engine counts the token behind, too
        return self.all(target, None, drafts, prompts, k, eos, sampling, seeds)

    def all(self, target, draft, drafts, prompts, k, eos, sampling, seeds):
        model, V = self.model(target, draft, eos)
        if sampling.temperature > 0 and sampling.min_p > 0:
            raise assay_iut.Unsupported("min_p")
        return [self.one(model, V, drafts, prompt, k, eos, sampling, seed) for prompt, seed in zip(prompts, seeds)]

    def one(self, model, V, drafts, prompt, k, eos, sampling, seed):
        if not ((0 <= prompt) & (prompt < V)).all():
            raise assay_iut.BadInput(f"a token of the prompt is not in 0..{V - 1}")
        search = {"max_length": len(prompt) + k, "batch_size": 1, "do_sample": sampling.temperature > 0}
        if sampling.temperature > 0:
            hotter = self.options.hotter if drafts else 1
            search |= {"temperature": sampling.temperature * hotter, "top_k": sampling.top_k, "top_p": sampling.top_p,
                       "random_seed": int(seed) & 0x7FFFFFFF}
        parameters = og.GeneratorParams(model)
        parameters.set_search_options(**search)
        if drafts:
            parameters.set_speculative_options(**drafts)
        generator = og.Generator(model, parameters)
        generator.append_tokens(prompt.tolist())
        while not generator.is_done():
            generator.generate_next_token()
        tokens = [int(t) for t in generator.get_sequence(0)][len(prompt):]
        if eos >= 0 and len(tokens) < k and eos not in tokens[-1:]:
            tokens.append(eos)
        return tokens, int(generator.get_speculative_stats()["draft_tokens_accepted"]) if drafts else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["convert"] and len(sys.argv) == 3:
        convert(pathlib.Path(sys.argv[2]).resolve())
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--padding", type=int, help="the token of padding (a control)")
    parser.add_argument("--hotter", type=float, default=1, help="times the temperature, with drafts (a control)")
    assay_iut.serve(Engine(parser.parse_args()), name="onnxruntime-genai", version=og.__version__, uniforms="own",
                    rule="token", map="other", arithmetic="f32", input="logits", methods="lookup", models="exported",
                    accepted_total=1)
