"""llama.cpp's server at the end of a context: what it answers of 16 tokens, without the suite.

    build/assay models export FOLDER
    build/audit-engines/llamacpp/bin/python docs/audits/llamacpp_context_end.py FOLDER

The model of six tokens gets 65 positions and drafts for itself, so that every draft is accepted. A prompt and its 16
tokens fill the context, or leave one position."""

import json
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HERE / "conformance/adapters/python"))
import assay_models
import xllamacpp
from openai_http import post

POSITIONS, BUDGET = 65, 16


def short_of(folder):
    """The model with fewer positions."""
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": POSITIONS}))
    return assay_models.gguf(str(folder), "F32")


def server(model, drafts):
    p, f32 = xllamacpp.CommonParams(), xllamacpp.ggml_type.GGML_TYPE_F32
    p.model.path, p.cache_type_k, p.cache_type_v = model, f32, f32
    p.n_parallel, p.n_ctx, p.cache_prompt, p.verbosity, p.cache_ram_mib = 1, POSITIONS, False, 0, 0
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    p.warmup = p.fit_params = p.ui = False
    if drafts:
        p.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        p.speculative.draft.mparams.path, p.speculative.draft.n_max = model, drafts
    return xllamacpp.Server(p)


with tempfile.TemporaryDirectory() as folder:
    model = short_of(pathlib.Path(shutil.copytree(sys.argv[1] + "/few", folder + "/few")))
    for drafts in (0, 1, 3, 8, 14):
        engine, counts = server(model, drafts), []
        for prompt in (POSITIONS - BUDGET, POSITIONS - BUDGET - 1):
            body = {"prompt": [i * 7 % 6 for i in range(prompt)], "n_predict": BUDGET, "temperature": 0,
                    "ignore_eos": True, "return_tokens": True}
            counts.append(len(post(engine.listening_address + "/completion", body)["tokens"]))
        print(f"{drafts:2d} drafts: {counts[0]} tokens of {BUDGET}; with one position to spare {counts[1]}")
