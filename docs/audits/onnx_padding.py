"""ONNX Runtime GenAI without the suite: a prompt whose last token has the id of padding.

    build/assay models export FOLDER
    python docs/audits/onnx_generate.py convert FOLDER
    python docs/audits/onnx_padding.py FOLDER

The trained target reads a text, and the same text with the token 257 behind it. Padding is 257, the builder's choice,
or 255, with which no prompt here ends."""

import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import onnxruntime_genai as og

TEXT, END = [256, *b"And it came to pass"], 257


def logits(model, tokens):
    parameters = og.GeneratorParams(model)
    parameters.set_search_options(max_length=64, batch_size=1)
    generator = og.Generator(model, parameters)
    generator.append_tokens(tokens)
    return np.array(generator.get_logits()).reshape(-1)[-258:]


with tempfile.TemporaryDirectory() as folder:
    for padding in (END, 255):
        place = pathlib.Path(shutil.copytree(sys.argv[1] + "/target.onnx", f"{folder}/{padding}"))
        settings = json.loads((place / "genai_config.json").read_text())
        told = settings["model"].get("pad_token_id")
        settings["model"]["pad_token_id"] = padding
        (place / "genai_config.json").write_text(json.dumps(settings))
        model = og.Model(str(place))
        a, b = logits(model, TEXT), logits(model, [*TEXT, END])
        apart = np.abs(a - b).max()
        print(f"padding {padding} (the builder's is {told}): two logits differ by {apart:.1f} at most")
