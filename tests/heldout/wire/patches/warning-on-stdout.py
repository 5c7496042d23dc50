# Fault: after the reply to a refused input one line of warning is printed on standard output.
import assay_iut
import batch_base


class Frames(assay_iut.Frames):
    def write(self, header, tensors=()):
        super().write(header, tensors)
        if header["status"] == "bad_input":
            self.sink.write(b"warning: input refused\n")
            self.sink.flush()


assay_iut.Frames = Frames
batch_base.serve("warning-on-stdout")
