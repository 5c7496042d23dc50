# Fault: a process that does not get the device alone claims max_gamma 2, and refuses more; the first claims no limit.
import fcntl
import os
import tempfile

import assay_iut
import batch_base
import example_batch

lock = open(os.path.join(tempfile.gettempdir(), "heldout-wire.lock"), "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    most = 0
except OSError:
    most = 2


class Verifier(example_batch.Verifier):
    def verify_batch(self, panel, b):
        if most and b.gamma > most:
            raise assay_iut.Unsupported(f"{b.gamma} drafts, where memory is left for {most}")
        return super().verify_batch(panel, b)


batch_base.serve("claims-second-process", Verifier(), max_gamma=most)
