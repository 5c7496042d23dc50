# Fault: the pool of a kind and of its sizes is kept from one call to the next.
import assay_iut
import example_pool


class Pools(example_pool.Pools):
    pools = {}

    def new_pool(self, kind, V, N, G):
        return self.pools.setdefault((kind, V, N, G), super().new_pool(kind, V, N, G))


assay_iut.serve(Pools, name="pool-kept", version="1", pools="lru ring")
