"""Not an item: a verifier with seeded uniforms of its own hash, for the items about seeds. It is correct."""
import assay_iut
import example_batch
import numpy as np

MASK = np.uint64(2**64 - 1)


def mix(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def uniforms(seeds, position, purpose):
    """One uniform of 53 bits for each seed."""
    key = mix(np.uint64((position * 8 + purpose + 1) * 0x9E3779B97F4A7C15 % 2**64))
    return (mix(mix(seeds ^ np.uint64(0x5851F42D4C957F2D)) + key) >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Seeded:
    def __init__(self):
        self.inner = example_batch.Verifier()

    def seeds(self, seed, n):
        return np.uint64(seed) + np.arange(n, dtype=np.uint64)  # wraps at 2^64

    def position(self, position):
        return position

    def verify_batch(self, panel, b):
        seeds, position = self.seeds(b.seed, b.n), self.position(b.position)
        b.u = np.empty((b.n, b.gamma + 2))
        for j in range(b.gamma):
            b.u[:, j] = uniforms(seeds, position + j, 0)
        b.u[:, b.gamma] = uniforms(seeds, position, 1)
        b.u[:, b.gamma + 1] = uniforms(seeds, position, 2)
        return self.inner.verify_batch(panel, b)

    def verify_greedy(self, logits, draft):
        return self.inner.verify_greedy(logits, draft)


def serve(iut, name):
    np.seterr(over="ignore")
    assay_iut.serve(iut, name=name, uniforms="seeded", arithmetic="f64", uniform_bits=53, tie="first",
                    q_zero="accept", bad_draft="error", empty="from p")
