# Fault: the member `frames` of a request is not read: a frame of another version is served as version 1.
import assay_iut
import batch_base


class Server(assay_iut.Server):
    def answer(self, header, tensors):
        header.pop("frames", None)
        return super().answer(header, tensors)


assay_iut.Server = Server
batch_base.serve("frames-any-version")
