# Fault: a look-up of a key outside the vocabulary is answered with no values, where the batch must be refused.
import assay_iut
import example_pool
import numpy as np


class Server(assay_iut.Server):
    def op_pool(self, args, t):
        odd = (t["insert"] == 0) & ((t["key"] < 0) | (t["key"] >= args["V"]))
        count, out = super().op_pool(args, dict(t, key=np.where(odd, 0, t["key"])))
        count[odd], out[odd] = 0, -1
        return count, out


assay_iut.Server = Server
assay_iut.serve(example_pool.Pools, name="pool-look-up-unchecked", version="1", pools="lru ring")
