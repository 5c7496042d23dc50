# Fault: the exit code is 1 if any request was refused, as a linter's is.
import sys

import assay_iut
import batch_base

refused = 0


class Server(assay_iut.Server):
    def answer(self, header, tensors):
        global refused
        reply, arrays = super().answer(header, tensors)
        refused += reply["status"] != "ok"
        return reply, arrays


assay_iut.Server = Server
batch_base.serve("exit-code-of-refusals")
sys.exit(1 if refused else 0)
