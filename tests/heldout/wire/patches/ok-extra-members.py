# Variant: reply headers have members that FRM-03 does not name: a time, a list and an object.
import assay_iut
import batch_base


class Server(assay_iut.Server):
    def answer(self, header, tensors):
        reply, arrays = super().answer(header, tensors)
        return dict(reply, seconds=0.25, trace=[1, [2, None], True], host={"name": "a", "ops": "none"}), arrays


assay_iut.Server = Server
batch_base.serve("ok-extra-members")
