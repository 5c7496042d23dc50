#!/usr/bin/env python3
"""Puts the acceptance rule of Hugging Face transformers under test: `_speculative_sampling`.

    ci/audit-transformers            installs transformers and PyTorch, then audits it

The function takes logits, one sequence at a time, and draws from PyTorch's global generator, so it
is tested with its own uniforms: range and format, law, independence, acceptance bound. With
`--ensemble-weight W` the rule is relaxed on purpose (an option of the function); that is not lossless,
and serves as the control that must fail.
"""

import argparse
import os
import sys

import torch
import transformers
from transformers.generation.utils import _speculative_sampling

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut

torch.set_num_threads(1)
torch.set_grad_enabled(False)


class Verifier:
    def __init__(self, weight):
        self.options = {} if weight is None else {"assistant_ensemble_weight": weight}

    def verify(self, p, q, draft, u):
        logits = torch.from_numpy(p).log()[None]
        n = len(draft)
        if n == 0:  # generate() does not call the function without candidates: it samples
            return torch.multinomial(logits[0, 0].softmax(-1), 1).tolist()
        tokens, _ = _speculative_sampling(torch.from_numpy(draft.astype("int64"))[None],
                                          torch.from_numpy(q).log()[None], n, logits, **self.options)
        return tokens[0].tolist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ensemble-weight", type=float)
    weight = parser.parse_args().ensemble_weight
    torch.manual_seed(int.from_bytes(os.urandom(7), "little"))
    assay_iut.serve(Verifier(weight), name="transformers._speculative_sampling",
                    version=f"transformers {transformers.__version__}, torch {torch.__version__}",
                    uniforms="own", uniform_bits=24, rule="token", map="other", arithmetic="f32",
                    q_zero="accept", bad_draft="error", empty="other")
