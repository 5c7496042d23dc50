# Fault: the seed of a case passes a binary64: above 2^53 neighbouring cases share their uniforms.
import numpy as np
import seeded_base


class Verifier(seeded_base.Seeded):
    def seeds(self, seed, n):
        return np.array([int(float(seed + i)) % 2**64 for i in range(n)], np.uint64)


seeded_base.serve(Verifier(), "seed-through-double")
