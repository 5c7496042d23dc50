"""A control for the question of penalties (`engine.processors`): an adapter whose calls with drafts forget them.

    build/audit-engines/NAME/bin/python docs/audits/penalties_forgotten.py ADAPTER.py [options of the adapter]

`assay run --iut exec:"..."` runs it in the place of conformance/adapters/python/ADAPTER.py. Plain decoding keeps its
penalties, so no case of engine.processors that is claimed may pass."""

import pathlib
import runpy
import sys

ADAPTERS = pathlib.Path(__file__).resolve().parents[2] / "conformance/adapters/python"
sys.path.insert(0, str(ADAPTERS))
import assay_iut

serve = assay_iut.serve


def forgetful(engine, **claims):
    plain, by_method = engine.generate, getattr(engine, "generate_by", None)

    def forgotten(processors):
        return [assay_iut.Processors(1, 0, 0)] * len(processors)

    def generate(target, draft, prompts, gamma, *more, processors):
        return plain(target, draft, prompts, gamma, *more,
                     processors=forgotten(processors) if gamma > 0 else processors)

    def generate_by(*what, processors):
        return by_method(*what, processors=forgotten(processors))

    engine.generate = generate
    if by_method:
        engine.generate_by = generate_by
    serve(engine, **claims)


if len(sys.argv) < 2:
    sys.exit(__doc__)
assay_iut.serve = forgetful
adapter = str(ADAPTERS / sys.argv[1])
sys.argv[:2] = [adapter]
runpy.run_path(adapter, run_name="__main__")
