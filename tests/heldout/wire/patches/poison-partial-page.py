# Fault: `cache_poison` begins at the last page of four entries, and destroys the committed ones in it.
import assay_iut
import example_model
import numpy as np


class Model(example_model.Model):
    def step(self, before, token):
        return (before[0] + 1, None) if before[1] is None else super().step(before, token)

    def logits(self, state):
        return np.full(self.V, np.nan, np.float32) if state[1] is None else super().logits(state)

    def cache_poison(self):
        self.waiting = [[] for _ in self.prefix]
        for prefix in self.prefix:
            if len(prefix) % 4:
                prefix[-1] = (prefix[-1][0], None)


np.seterr(over="ignore")
assay_iut.serve(Model(), name="poison-partial-page", lm_arithmetic="self consistent", greedy_identical=1)
