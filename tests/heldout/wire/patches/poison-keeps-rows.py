# Fault: `cache_poison` does not forget the rows of the last forwards: they can be committed after it.
import assay_iut
import example_model
import numpy as np


class Model(example_model.Model):
    def cache_poison(self):
        pass  # nothing is kept for rows that are not committed but the rows themselves


np.seterr(over="ignore")
assay_iut.serve(Model(), name="poison-keeps-rows", lm_arithmetic="self consistent", greedy_identical=1)
