"""The mlx-lm adapter with one line of mlx-lm's `speculative_generate_step` changed from outside: two controls that must
fail, and a mend of what penalties are shown.

    build/audit-engines/mlx/bin/python docs/audits/mlx_changed.py CHANGE [options of the adapter]

`assay run --iut exec:"..."` runs it in the adapter's place. CHANGE is `accepts` (every draft is taken, whatever the
target says), `keeps` (the target's cache keeps the row of a refused draft), or `shown` (penalties are shown the whole
prompt, as in plain decoding)."""

import inspect
import pathlib
import runpy
import sys

import mlx_lm.generate  # noqa: F401 (the module, which the package hides behind a function of that name)

ADAPTER = pathlib.Path(__file__).resolve().parents[2] / "conformance/adapters/python/mlx_generate.py"
CHANGES = {"accepts": ("tn, dtn, lpn = tokens[n], ", "tn, dtn, lpn = draft_tokens[n], "),
           "keeps": ("(model_cache, num_draft - num_accept)", "(model_cache, max(num_draft - num_accept - 1, 0))"),
           "shown": ("prev_tokens = None", "prev_tokens = y[:-1] if y.size > 1 else None")}

if len(sys.argv) < 2 or sys.argv[1] not in CHANGES:
    sys.exit(__doc__)
engine = sys.modules["mlx_lm.generate"]
source, (old, new) = inspect.getsource(engine.speculative_generate_step), CHANGES[sys.argv[1]]
if source.count(old) != 1:
    sys.exit(f"this version of mlx-lm has {source.count(old)} times: {old}")
exec(source.replace(old, new), vars(engine))
sys.argv[:2] = [str(ADAPTER)]
runpy.run_path(str(ADAPTER), run_name="__main__")
