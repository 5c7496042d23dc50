# Variant: a panel is copied only if a digest of all its arrays differs from that of the panel that is held.
import hashlib

import batch_base
import example_batch
import numpy as np


class Verifier(example_batch.Verifier):
    held = digest = None

    def load_panel(self, panel):
        arrays = [getattr(panel, name) for name in ("cls", "next", "p", "q", "p_logit", "q_logit")]
        whole = repr((panel.V, panel.S, panel.C, panel.target, panel.draft)).encode()
        digest = hashlib.sha256(whole + b"".join(a.tobytes() for a in arrays)).digest()
        if digest != self.digest:
            self.digest, self.held = digest, [np.array(a) for a in arrays]
        panel.cls, panel.next, panel.p, panel.q, panel.p_logit, panel.q_logit = self.held


batch_base.serve("ok-panel-digest", Verifier())
