# Fault: the status of a refused input is `bad-input`, with a hyphen.
import assay_iut
import batch_base


class Server(assay_iut.Server):
    def answer(self, header, tensors):
        reply, arrays = super().answer(header, tensors)
        return dict(reply, status=reply["status"].replace("_", "-")), arrays


assay_iut.Server = Server
batch_base.serve("status-word")
