"""An adapter whose calls may have requests of different sampling, seed and budget (`engine.mixed`, CLM-16), from one
that takes them alike: the engine is asked for each request by its own.

    build/audit-engines/NAME/bin/python docs/audits/mixed_requests.py ADAPTER.py [options of the adapter]

`assay run --iut exec:"..."` runs it in the place of conformance/adapters/python/ADAPTER.py, which is llamacpp_server.py
or openvino_generate.py. Options say whether the requests of a call go in at once: --slots 4 there, --together here."""

import pathlib
import runpy
import sys

ADAPTERS = pathlib.Path(__file__).resolve().parents[2] / "conformance/adapters/python"
OF_ONE = {"llamacpp_server.py": "one", "openvino_generate.py": "settings"}  # what takes k, eos, sampling and seed
if len(sys.argv) < 2 or sys.argv[1] not in OF_ONE:
    sys.exit(__doc__)
sys.path.insert(0, str(ADAPTERS))
import assay_iut

serve, adapter = assay_iut.serve, sys.argv[1]


def with_requests(call):
    """`call` with the requests in the place of the seeds."""
    def with_each(*what, each, processors):
        return call(*what[:-1], each, processors=processors)

    return with_each


def of_request(call):
    """`call` with the budget, the sampling and the seed of the request that stands in the place of the seed."""
    def with_its_own(*what):
        i = next(i for i, given in enumerate(what) if isinstance(given, assay_iut.Record))
        r, eos = what[i], what[i - 2]
        return call(*what[:i - 3], r.budget, eos, r.sampling, r.seed, *what[i + 1:])

    return with_its_own


def serve_mixed(engine, **claims):
    engine.generate, engine.generate_by = with_requests(engine.generate), with_requests(engine.generate_by)
    setattr(engine, OF_ONE[adapter], of_request(getattr(engine, OF_ONE[adapter])))
    serve(engine, per_request="sampling seed budget", **claims)


assay_iut.serve = serve_mixed
sys.argv[:2] = [str(ADAPTERS / adapter)]
runpy.run_path(sys.argv[0], run_name="__main__")
