# Fault: every tensor of a reply is padded to a multiple of 8 bytes. Even batches do not show it.
import json
import struct

import assay_iut
import batch_base


class Frames(assay_iut.Frames):
    def write(self, header, tensors=()):
        header["tensors"] = [[name, assay_iut.kind_of(a), list(a.shape)] for name, a in tensors]
        text = json.dumps(header).encode()
        data = b"".join(a.tobytes() + bytes(-a.nbytes % 8) for _, a in tensors)
        self.sink.write(struct.pack("<QI", 4 + len(text) + len(data), len(text)) + text + data)
        self.sink.flush()


assay_iut.Frames = Frames
batch_base.serve("tensors-aligned")
