#!/usr/bin/env python3
"""The rows of test_panel.c, from the PAN clauses alone: Python integers, its own Philox, the
smallest lambda by trying them all. Run it to see where the constants of the test come from."""


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def zipf(seed, row, V, k, sharp):
    ab = [philox([t, row, 16, 0], [seed & 0xFFFFFFFF, seed >> 32])[:2] for t in range(V)]
    order = sorted(range(V), key=lambda t: (ab[t][0], t))
    rank = [0] * V
    for i, t in enumerate(order):
        rank[t] = i
    w = [(2**40 // (rank[t] + 1)) * (65536 + ab[t][1] % 65536) // 65536 for t in range(V)]
    for _ in range(sharp):
        w = [x * x // max(w) for x in w]
    n = [x * 2**k // sum(w) for x in w]
    top = w.index(max(w))
    n[top] += 2**k - sum(n)
    return n, rank, order, top


def mix(row, lam, V, k):
    n, rank, order, top = row
    m = [(lam * n[t] + (65536 - lam) * n[order[V - 1 - rank[t]]]) // 65536 for t in range(V)]
    m[top] += 2**k - sum(m)
    return m


def pair(seed, row, V, k, a):
    def overlap(z, lam):
        return sum(map(min, z[0], mix(z, lam, V, k)))

    for sharp in range(6):
        z = zipf(seed, row, V, k, sharp)
        if overlap(z, 0) < a * 2**k:
            break
    lam = 0
    while overlap(z, lam) < a * 2**k:
        lam += 1
    return z[0], lam, mix(z, lam, V, k)


def fnv(row):
    h = 0xCBF29CE484222325
    for x in row:
        h = (h ^ x) * 0x100000001B3 % 2**64
    return h


if __name__ == "__main__":
    assert philox([0] * 4, [0] * 2)[0] == 0x6627E8D5
    for sharp in (0, 2):
        print(zipf(0x123456789ABCDEF0, 7, 6, 12, sharp)[0])
    for V, k, a in ((2, 12, 0.3), (3, 12, 0.95), (5, 12, 0.7), (8, 12, 0.3)):
        print(V, k, a, pair(99, 3, V, k, a))
    for V, k, a in ((64, 16, 0.7), (1000, 20, 0.3), (1024, 24, 0.95)):
        n, lam, m = pair(5, 0, V, k, a)
        print(V, k, a, lam, hex(fnv(n)), hex(fnv(m)))
