# Fault: u64 tensors are read in network byte order, all other types rightly.
import numpy as np
import seeded_base


def swapped(x):
    return int.from_bytes(x.to_bytes(8, "little"), "big")


class Verifier(seeded_base.Seeded):
    def seeds(self, seed, n):
        return super().seeds(swapped(seed), n)

    def position(self, position):
        return swapped(position)


seeded_base.serve(Verifier(), "u64-big-endian")
