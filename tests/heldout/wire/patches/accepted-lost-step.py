# Fault: the step that meets the end of sequence is not told among the accepted drafts.
import assay_iut
import example_generate


class Engine(example_generate.Engine):
    def one(self, target, propose, most, prompt, k, eos, sampling, seed):
        out, accepted = super().one(target, propose, most, prompt, k, eos, sampling, seed)
        return out, accepted[:-1] if out[-1] == eos else accepted


assay_iut.serve(Engine(), name="accepted-lost-step", uniforms="own", uniform_bits=53, rule="token", arithmetic="f32",
                lm_architectures="llama", methods="lookup")
