# Variant: accepted drafts are told as one total a request, by the claim `accepted_total` (CLM-11).
import assay_iut
import example_generate


class Engine(example_generate.Engine):
    def one(self, target, propose, most, prompt, k, eos, sampling, seed):
        out, accepted = super().one(target, propose, most, prompt, k, eos, sampling, seed)
        return out, sum(accepted)


assay_iut.serve(Engine(), name="ok-accepted-total", uniforms="own", uniform_bits=53, rule="token", arithmetic="f32",
                lm_architectures="llama", methods="lookup", accepted_total=1)
