# Fault: seeds are cut to 32 bits: seeds that differ in the high word have the same uniforms.
import numpy as np
import seeded_base


class Verifier(seeded_base.Seeded):
    def seeds(self, seed, n):
        return super().seeds(seed, n) & np.uint64(2**32 - 1)


seeded_base.serve(Verifier(), "seed-low-word")
