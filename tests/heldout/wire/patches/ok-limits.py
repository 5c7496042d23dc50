# Variant: vocabularies to 300 and three drafts are declared; larger cases are refused as unsupported.
import assay_iut
import batch_base
import example_batch


class Verifier(example_batch.Verifier):
    def load_panel(self, panel):
        if panel.V > 300:
            raise assay_iut.Unsupported("V is at most 300")

    def verify_batch(self, panel, b):
        if b.gamma > 3:
            raise assay_iut.Unsupported("gamma is at most 3")
        return super().verify_batch(panel, b)


batch_base.serve("ok-limits", Verifier(), max_vocab=300, max_gamma=3)
