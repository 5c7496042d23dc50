# Fault: where the request says that no token ends a stream, the model's own end of sequence does; unclaimed.
import json
import os

import assay_iut
import example_generate


class Engine(example_generate.Engine):
    def generate(self, target, draft, prompts, gamma, k, eos, sampling, seeds):
        if eos == -1:
            with open(os.path.join(target, "config.json"), encoding="utf-8") as f:
                eos = json.load(f).get("eos_token_id", -1)
        return super().generate(target, draft, prompts, gamma, k, eos, sampling, seeds)


assay_iut.serve(Engine(), name="eos-from-config", uniforms="own", uniform_bits=53, rule="token", arithmetic="f32",
                lm_architectures="llama", methods="lookup")
