#!/usr/bin/env python3
"""Shows the one deviation that the audit of transformers found: a draft of target probability exactly 0
is accepted when the uniform is exactly 0. Run it in the environment that ci/audit-transformers makes."""

import torch
from transformers.generation.utils import _speculative_sampling

BLOCK = 1_000_000
torch.manual_seed(1)
zeros = None
skipped = 0
while zeros is None or len(zeros) == 0:  # torch.rand gives a 0 once in 2^24
    start = torch.get_rng_state()
    zeros = (torch.rand(BLOCK) == 0).nonzero()[:, 0]
    skipped += BLOCK
first = skipped - BLOCK + int(zeros[0])
torch.set_rng_state(start)
torch.rand(int(zeros[0]))

target = torch.zeros(1, 3, 8)
target[..., 5] = 1  # every row allows token 5 alone
draft = torch.full((1, 2, 8), 1 / 8)
tokens, matches = _speculative_sampling(torch.tensor([[3, 1]]), draft.log(), 2, target.log())
print(f"seed 1, after {first} uniforms: drafts [3, 1], target one-hot on 5 -> {tokens.tolist()}, "
      f"{int(matches)} accepted")
