# Variant: the text of an error has several lines, other scripts, a NUL, escapes and 4,000 characters.
import assay_iut
import batch_base


class Server(assay_iut.Server):
    def answer(self, header, tensors):
        reply, arrays = super().answer(header, tensors)
        if "error" in reply:
            reply["error"] = "Traceback:\n\t\u65e0\u6548 \x1b[31m\u0000 \"" + reply["error"] + "\"\r\n" + "at f\n" * 800
        return reply, arrays


assay_iut.Server = Server
batch_base.serve("ok-error-words")
