# Fault: subnormal entries of p and q read as 0, as they do behind -ffast-math.
import batch_base
import example_batch
import numpy as np


class Verifier(example_batch.Verifier):
    def load_panel(self, panel):
        tiny = np.finfo(np.float32).tiny
        panel.p = np.where(panel.p < tiny, np.float32(0), panel.p)
        panel.q = np.where(panel.q < tiny, np.float32(0), panel.q)


batch_base.serve("subnormals-flushed", Verifier())
