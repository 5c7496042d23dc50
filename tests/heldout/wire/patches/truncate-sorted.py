# Fault: `truncate` sorts the sequences of a call, and leaves the lengths to keep in their order.
import assay_iut
import example_model
import numpy as np


class Server(assay_iut.Server):
    def op_truncate(self, args, t):
        return super().op_truncate(args, dict(t, sequence=np.sort(t["sequence"])))


np.seterr(over="ignore")
assay_iut.Server = Server
assay_iut.serve(example_model.Model(), name="truncate-sorted", lm_arithmetic="self consistent", greedy_identical=1)
