# Fault: the reply's buffer of each shape is kept and not filled with -1 again: padding has tokens of an earlier call.
import batch_base
import example_batch
import numpy as np


class Verifier(example_batch.Verifier):
    buffers = {}

    def verify_batch(self, panel, b):
        out, out_len = super().verify_batch(panel, b)
        kept = self.buffers.setdefault(out.shape, np.full(out.shape, -1, np.int32))
        kept[out >= 0] = out[out >= 0]
        return kept, out_len


batch_base.serve("stale-padding", Verifier())
