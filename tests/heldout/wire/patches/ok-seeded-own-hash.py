# Variant: seeded uniforms by a hash of its own, not Philox, in an arithmetic that is not canonical (VAR-02).
import seeded_base

seeded_base.serve(seeded_base.Seeded(), "ok-seeded-own-hash")
