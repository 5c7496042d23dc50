# Variant: one reply in ten has a header of 60,000 bytes, most of them blanks behind the object.
import json
import struct

import assay_iut
import batch_base


class Frames(assay_iut.Frames):
    def write(self, header, tensors=()):
        if header["id"] % 10:
            return super().write(header, tensors)
        header["tensors"] = [[name, assay_iut.kind_of(a), list(a.shape)] for name, a in tensors]
        text = json.dumps(header).encode().ljust(60_000)
        data = b"".join(a.tobytes() for _, a in tensors)
        self.sink.write(struct.pack("<QI", 4 + len(text) + len(data), len(text)) + text + data)
        self.sink.flush()


assay_iut.Frames = Frames
batch_base.serve("ok-long-header")
