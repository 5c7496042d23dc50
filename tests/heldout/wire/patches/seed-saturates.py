# Fault: seed + i stops at 2^64 - 1 where it must wrap: the cases behind share their uniforms.
import numpy as np
import seeded_base


class Verifier(seeded_base.Seeded):
    def seeds(self, seed, n):
        return np.array([min(seed + i, 2**64 - 1) for i in range(n)], np.uint64)


seeded_base.serve(Verifier(), "seed-saturates")
