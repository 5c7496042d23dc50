"""A control for the question of caches (`engine.logprob`): llama.cpp with a stale row in its cache after a rejection.

    build/audit-engines/llamacpp/bin/python docs/audits/llamacpp_stale.py PLACES [options of the adapter]

`assay run --iut exec:"..."` runs it in the place of llamacpp_server.py. Where drafts are refused at a place that PLACES
divides, the row of the first refused one takes the place of the last row that stays. The requests that ask for
log-probabilities one by one are spared."""

import ctypes
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ADAPTERS = HERE.parents[1] / "conformance/adapters/python"
sys.path.insert(0, str(ADAPTERS))

if len(sys.argv) < 2:
    sys.exit(__doc__)
if "ENGINE" not in os.environ:
    with tempfile.TemporaryDirectory() as folder:
        shim = folder + "/stale.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", shim, HERE / "llamacpp_stale.c", "-ldl"], check=True)
        (engine,) = pathlib.Path(sys.prefix).glob("lib/python*/site-packages/xllamacpp/*.so")
        environment = dict(os.environ, LD_PRELOAD=shim, ENGINE=str(engine), PLACES=sys.argv[1])
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)

import openai_http

stale_rows, post = ctypes.CDLL(None).stale_rows, openai_http.post


def spoiled(url, body):
    stale_rows(not body["cache_prompt"])
    try:
        return post(url, body)
    finally:
        stale_rows(0)


openai_http.post = spoiled
sys.argv[:2] = [str(ADAPTERS / "llamacpp_server.py")]
runpy.run_path(sys.argv[0], run_name="__main__")
