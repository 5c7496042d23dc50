"""An engine behind the Python adapter that checks what it was asked and echoes the prompts, or does one
thing wrong: argv[1]."""

import sys

import assay_iut

mode = sys.argv[1]


class Echo:
    if mode == "logprobs":
        tell = None
        asked = []

    def generate(self, target, draft, prompts, gamma, k, eos, sampling, seeds, each=None, processors=None):
        if mode == "honest":
            assert (target, draft, gamma, k, eos) == ("a target", "a draft", 4, 12, 300)
            assert sampling == (0.5, 7, 0.75, 0.125), sampling
            assert seeds == [2**64 - 2, 2**64 - 1, 0], seeds
            assert all(p.dtype == "int32" for p in prompts)
        if mode == "each":
            told = [(tuple(one.sampling), one.seed, one.budget, one.ends) for one in each]
            greedy = (0, 0, 1, 0)
            assert told == ([(greedy, seed, 12, []) for seed in (7, 8, 9)] if eos < 0 else
                            [(greedy, 2**64 - 1, 3, [6]), ((0.5, 7, 0.75, 0.125), 1, 4, [6, 8, 9]),
                             ((1, 0, 1, 0), 2, 5, [6, 10])]), told
        if mode == "processors":
            told = [tuple(one) for one in processors]
            assert told == ([(1, 0, 0)] * 3 if eos < 0 else [(1.5, 0, 0.25), (1, 2, 0), (1.25, 0.5, 0)]), told
        if mode == "no draft" and draft is None:
            raise assay_iut.BadInput("there is no draft model")
        if mode == "refuses":
            raise assay_iut.Unsupported("not this model")
        if mode == "raises":
            raise KeyError("a weight")
        if mode == "too few":
            prompts = prompts[1:]
        if mode == "too long":
            return [(range(13), None)] * len(prompts)
        if mode == "many steps":
            return [([0], [0] * 13)] * len(prompts)
        if mode == "logprobs":
            self.asked.append(self.tell)
            assert self.asked in ([False], [False, True]), self.asked
            if not self.tell:
                return [(p, None) for p in prompts]
            return [(p, None, [-0.25 * (i + 1) for i in range(len(p))]) for p in prompts]
        if mode == "totals":
            return [(p, 4 if len(p) > 1 else None) for p in prompts]
        return [(p, [4] if len(p) > 1 else None) for p in prompts]

    def generate_by(self, method, sizes, target, prompts, k, eos, sampling, seeds, draft=None, gamma=0):
        assert (target, k, eos, seeds) == ("a target", 12, -1, [7, 8, 9])
        assert (draft, gamma) == (("a draft", 4) if method == "ouroboros" else (None, 0))
        answers = {("lookahead", (9, 3, 8)): [1], ("lookup", (2, 5)): [2], ("ouroboros", (7, 4, 0)): [3]}
        return [(answers[method, sizes], None)] * len(prompts)


architectures = {"no architecture": " ", "unknown architecture": "llama gpt2"}
methods = {} if mode == "no methods" else {"methods": "lookahead lookup", "greedy_methods": "lookahead"}
if mode == "ouroboros":
    methods = {"methods": "lookup ouroboros", "warm": 1, "ranks": 4}
own = {"totals": {"accepted_total": 1, "eos_always": 1}, "each": {"per_request": "sampling seed budget ends"}, "logprobs": {"logprobs": "raw"},
       "processors": {"processors": "repetition presence frequency"}}
assay_iut.serve(Echo, name=mode, uniforms="own", lm_architectures=architectures.get(mode, "qwen3 llama"),
                **methods, **own.get(mode, {}))
