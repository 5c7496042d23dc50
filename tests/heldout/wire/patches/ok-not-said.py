# Variant: only rule, map, source of uniforms and input are claimed; edges, arithmetic and limits are not said.
import assay_iut
import example_batch

assay_iut.serve(example_batch.Verifier(), name="ok-not-said")
