"""Holds the drafts of prompt lookup, preset hf, against transformers' PromptLookupCandidateGenerator.

    python parity_lookup.py ASSAY VECTORS [--prompts N]     (see ci/parity-lookup)

Two sources of steps: the trace vectors whose switches are those of hf, whose answers are the oracle's; and the
reference, which decodes N random prompts of few tokens, ends of sequence among them. At each step transformers
is given the history and must propose the same drafts, once these are cut to what the budget and the rows of a
forward leave (LKP-05), which transformers does elsewhere. Exit code 0: no difference.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import torch
import transformers
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator


def theirs(history, longest, drafts, eos, left):
    generator = PromptLookupCandidateGenerator(
        eos_token_id=torch.tensor(eos) if eos else None, num_output_tokens=drafts,
        max_matching_ngram_size=longest, max_length=len(history) + left)
    ids, _ = generator.get_candidates(torch.tensor([history]))
    return ids[0].tolist()[len(history):]


class Tally:
    def __init__(self):
        self.steps = self.found = self.wrong = 0

    def hold(self, name, history, longest, drafts, eos, left, rows, ours):
        due = theirs(history, longest, drafts, eos, left)
        due = due[:min(left - 1, rows - 1 if rows else left)]
        self.steps += 1
        self.found += bool(due)
        if due == ours:
            return
        self.wrong += 1
        print(f"{name}: history {history}, ends {eos}: transformers proposes {due}, Assay {ours}")


def vectors(folder, tally):
    for file in "trace.json", "trace_model.json":
        with open(os.path.join(folder, file)) as f:
            groups = json.load(f)["groups"]
        for test in (t for g in groups if g["method"] == "lookup" for t in g["tests"]):
            switches, expected = test["switches"], test["expected"]
            if "tokens" not in expected or (switches["partial"], switches["cut_at_eos"]) != ("yes", "yes"):
                continue
            history, eos = list(test["prompt"]), [] if test["eos"] < 0 else [test["eos"]]
            end = len(history) + test["budget"]
            for step in expected["steps"]:
                tally.hold(test["id"], history, test["sizes"]["longest"], test["sizes"]["drafts"], eos,
                           end - len(history), test["rows"], sum(step["candidates"], []))
                history += step["emitted"]


def reference(assay, folder, prompts, tally):
    with open(os.path.join(folder, "models", "target", "generation_config.json")) as f:
        end = json.load(f)["eos_token_id"]
    eos = end if isinstance(end, list) else [end]
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "steps.json")
        for number in range(prompts):
            alphabet = draw.sample(range(97, 123), draw.choice((1, 2, 3, 6))) + eos * draw.choice((0, 1))
            history = [draw.choice(alphabet) for _ in range(draw.randint(1, 30))]
            longest, drafts, budget = draw.randint(1, 4), draw.randint(1, 12), draw.randint(1, 40)
            subprocess.run([assay, "decode", "--method", "lookup", "--preset", "hf", "--ngram", str(longest), "--gamma",
                            str(drafts), "--max-new", str(budget), "--threads", "1", "--tokens",
                            ",".join(map(str, history)), "--json", out],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open(out) as f:
                steps = json.load(f)["steps"]
            last = len(history) + budget
            for step in steps:
                tally.hold(f"prompt {number}", history, longest, drafts, eos, last - len(history), 0,
                           [token for token, _ in step["rows"][1:]])
                history = history + step["run"][:step["emitted"]]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("assay")
    options.add_argument("vectors")
    options.add_argument("--prompts", type=int, default=300)
    o = options.parse_args()
    torch.set_num_threads(1)
    wrong = 0
    for name, run in ("trace vectors", lambda t: vectors(o.vectors, t)), \
                     ("reference", lambda t: reference(o.assay, o.vectors, o.prompts, t)):
        tally = Tally()
        run(tally)
        print(f"{name}: {tally.steps} steps, {tally.found} with drafts, {tally.wrong} differ from transformers "
              f"{transformers.__version__}")
        wrong += tally.wrong + (tally.found == 0)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
