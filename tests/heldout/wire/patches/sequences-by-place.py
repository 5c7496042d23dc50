# Fault: a forward of all sequences takes their prefixes by place in the call, not by the sequence that is named.
import assay_iut
import example_model
import numpy as np


class Model(example_model.Model):
    def forward(self, shares):
        if len(shares) < len(self.prefix):
            return super().forward(shares)
        logits = super().forward([(i, *share[1:]) for i, share in enumerate(shares)])
        rows = list(self.waiting)
        for i, (sequence, *_) in enumerate(shares):
            self.waiting[sequence] = rows[i]
        return logits


np.seterr(over="ignore")
assay_iut.serve(Model(), name="sequences-by-place", lm_arithmetic="self consistent", greedy_identical=1)
