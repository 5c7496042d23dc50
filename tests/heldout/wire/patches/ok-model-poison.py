# Variant: `cache_poison` on a cache that has no slots but committed ones: it only forgets the rows of last forwards.
import assay_iut
import example_model
import numpy as np


class Model(example_model.Model):
    def cache_poison(self):
        self.waiting = [[] for _ in self.prefix]


np.seterr(over="ignore")
assay_iut.serve(Model(), name="ok-model-poison", lm_arithmetic="self consistent", greedy_identical=1)
