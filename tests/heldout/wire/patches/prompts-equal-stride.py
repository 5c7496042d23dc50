# Fault: prompt i is taken at i times the first prompt's length. Prompts of one length do not show it.
import assay_iut
import example_generate
import numpy as np


class Server(assay_iut.Server):
    def op_generate(self, args, t):
        counts = t["prompt_count"]
        at = [np.arange(i * counts[0], i * counts[0] + c) % len(t["prompt"]) for i, c in enumerate(counts)]
        return super().op_generate(args, dict(t, prompt=t["prompt"][np.concatenate(at)] if len(at) else t["prompt"]))


assay_iut.Server = Server
assay_iut.serve(example_generate.Engine(), name="prompts-equal-stride", uniforms="own", uniform_bits=53, rule="token",
                arithmetic="f32", lm_architectures="llama", methods="lookup")
