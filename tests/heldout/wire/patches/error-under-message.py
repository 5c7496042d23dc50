# Fault: the text of a refusal stands under `message`; there is no `error`.
import assay_iut
import batch_base


class Server(assay_iut.Server):
    def answer(self, header, tensors):
        reply, arrays = super().answer(header, tensors)
        if "error" in reply:
            reply["message"] = reply.pop("error")
        return reply, arrays


assay_iut.Server = Server
batch_base.serve("error-under-message")
