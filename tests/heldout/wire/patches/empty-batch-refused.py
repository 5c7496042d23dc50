# Fault: a batch of no cases is refused, as a kernel refuses a launch of no blocks.
import assay_iut
import batch_base


class Server(assay_iut.Server):
    def serve(self, op, args, tensors):
        if args.get("n") == 0:
            raise assay_iut.BadInput("a batch has at least one case")
        return super().serve(op, args, tensors)


assay_iut.Server = Server
batch_base.serve("empty-batch-refused")
