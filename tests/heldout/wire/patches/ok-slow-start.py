# Variant: the first answer comes after two seconds, the first panel takes one more, and one call in 40 takes 0.2 s.
import time

import assay_iut
import batch_base
import example_batch


class Server(assay_iut.Server):
    loaded = False

    def answer(self, header, tensors):
        if header["op"] == "panel" and not self.loaded:
            self.loaded = True
            time.sleep(1)
        elif header["id"] % 40 == 0:
            time.sleep(0.2)
        return super().answer(header, tensors)


time.sleep(2)
assay_iut.Server = Server
batch_base.serve("ok-slow-start")
