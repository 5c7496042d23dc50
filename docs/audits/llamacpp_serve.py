"""llama.cpp's server with a model of the suite, for an adapter that asks a server over HTTP.

    build/assay models export FOLDER
    build/audit-engines/llamacpp/bin/python docs/audits/llamacpp_serve.py FOLDER/few --draft FOLDER/fewer --port 8123
    build/audit-engines/llamacpp/bin/python docs/audits/llamacpp_serve.py FOLDER/few --port 8124

The wheel has no program that does this. Keys, values and attention are in binary32, as the suite has them. The server
runs until it is interrupted."""

import argparse
import pathlib
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HERE / "conformance/adapters/python"))
import assay_models
import xllamacpp

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("model", help="a folder that `assay models export` wrote")
parser.add_argument("--draft", help="the folder of the draft model; without it there are no drafts")
parser.add_argument("--drafts", type=int, default=4, help="drafts a step")
parser.add_argument("--port", type=int, default=8123)
options = parser.parse_args()

p, f32 = xllamacpp.CommonParams(), xllamacpp.ggml_type.GGML_TYPE_F32
p.model.path, p.port = assay_models.gguf(options.model, "F32"), options.port
p.cache_type_k = p.cache_type_v = f32
p.flash_attn_type = xllamacpp.llama_flash_attn_type(0)  # off: its products are in binary16
p.n_parallel, p.verbosity, p.cache_ram_mib = 1, 0, 0
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
p.warmup = p.fit_params = p.ui = False
if options.draft:
    draft = p.speculative.draft
    p.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
    draft.mparams.path, draft.n_max = assay_models.gguf(options.draft, "F32"), options.drafts
    draft.cache_type_k = draft.cache_type_v = f32
engine = xllamacpp.Server(p)
print(f"{engine.listening_address}/v1: {options.model}"
      + (f", {options.drafts} drafts a step of {options.draft}" if options.draft else ", no drafts"), flush=True)
signal.pause()
