# Fault: a refused `verify` still brings its arrays, as they arrived.
import assay_iut
import batch_base
import numpy as np


class Server(assay_iut.Server):
    def answer(self, header, tensors):
        reply, arrays = super().answer(header, tensors)
        if reply["status"] != "ok" and header["op"] == "verify":
            n, gamma = header["args"]["n"], header["args"]["gamma"]
            arrays = [("out", np.full((n, gamma + 1), -1, "<i4")), ("out_len", np.zeros(n, "<i4"))]
        return reply, arrays


assay_iut.Server = Server
batch_base.serve("error-with-tensors")
