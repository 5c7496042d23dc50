# Variant: the members of every header stand in the opposite order, with indentation, blanks and line ends (FRM-01).
import json
import struct

import assay_iut
import batch_base


def turned(x):
    return {key: turned(x[key]) for key in reversed(x)} if isinstance(x, dict) else x


class Frames(assay_iut.Frames):
    def write(self, header, tensors=()):
        header["tensors"] = [[name, assay_iut.kind_of(a), list(a.shape)] for name, a in tensors]
        text = (" \r\n" + json.dumps(turned(header), indent=3, separators=(" ,\t", "  :  ")) + "\n").encode()
        data = b"".join(a.tobytes() for _, a in tensors)
        self.sink.write(struct.pack("<QI", 4 + len(text) + len(data), len(text)) + text + data)
        self.sink.flush()


assay_iut.Frames = Frames
batch_base.serve("ok-key-order")
