# Variant: `ops` stand in the opposite order, with two blanks between them.
import assay_iut
import batch_base


class Server(assay_iut.Server):
    def __init__(self, implementation, words):
        super().__init__(implementation, words)
        self.claims["ops"] = "  ".join(reversed(self.claims["ops"].split()))


assay_iut.Server = Server
batch_base.serve("ok-ops-order")
