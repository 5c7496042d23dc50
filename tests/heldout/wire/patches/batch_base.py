"""Not an item: serves example_batch's verifier, or one made of it, under the claims of that example."""
import assay_iut
import example_batch


def serve(name, iut=None, **claims):
    words = dict(name=name, version="1", rule="token", arithmetic="f64", uniform_bits=24, tie="first",
                 q_zero="accept", bad_draft="error", empty="from p")
    words.update(claims)
    assay_iut.serve(iut or example_batch.Verifier(), **words)
