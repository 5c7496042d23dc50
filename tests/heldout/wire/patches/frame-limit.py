# Fault: requests of more than 4 MiB are refused, as the usual limit of a message has it; no claim says so.
import assay_iut
import batch_base


class Server(assay_iut.Server):
    def serve(self, op, args, tensors):
        if sum(a.nbytes for a in tensors.values()) > 4 << 20:
            raise assay_iut.Unsupported("the message is larger than 4194304 bytes")
        return super().serve(op, args, tensors)


assay_iut.Server = Server
batch_base.serve("frame-limit")
