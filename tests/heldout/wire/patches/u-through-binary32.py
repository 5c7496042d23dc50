# Fault: uniforms are declared with 53 bits, and pass a binary32 on their way.
import batch_base
import example_batch
import numpy as np


class Verifier(example_batch.Verifier):
    def verify_batch(self, panel, b):
        b.u = b.u.astype(np.float32).astype(np.float64)
        return super().verify_batch(panel, b)

    def draw(self, p, u):
        return super().draw(p, float(np.float32(u)))


batch_base.serve("u-through-binary32", Verifier(), uniform_bits=53)
