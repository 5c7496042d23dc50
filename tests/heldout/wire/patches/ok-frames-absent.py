# Variant: the reply to `claims` has no `frames`, which means version 1 (FRM-07).
import assay_iut
import batch_base


class Server(assay_iut.Server):
    def answer(self, header, tensors):
        reply, arrays = super().answer(header, tensors)
        reply.pop("frames", None)
        return reply, arrays


assay_iut.Server = Server
batch_base.serve("ok-frames-absent")
