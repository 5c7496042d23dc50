# Variant: the first 200 bytes of a reply are written one by one, the rest in pieces of 1,000, each flushed.
import io

import assay_iut
import batch_base


class Frames(assay_iut.Frames):
    def write(self, header, tensors=()):
        sink, self.sink = self.sink, io.BytesIO()
        super().write(header, tensors)
        data, self.sink = self.sink.getvalue(), sink
        ends = [*range(1, min(200, len(data)) + 1), *range(1200, len(data), 1000), len(data)]
        for begin, end in zip([0, *ends], ends):
            self.sink.write(data[begin:end])
            self.sink.flush()


assay_iut.Frames = Frames
batch_base.serve("ok-small-writes")
