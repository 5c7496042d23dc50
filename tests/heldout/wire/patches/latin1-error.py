# Fault: the header of a refusal is Latin-1, not UTF-8, and its text has an umlaut.
import json

import assay_iut
import batch_base


class Text(str):
    def encode(self, *_):
        return str.encode(self, "latin-1")


class Server(assay_iut.Server):
    def answer(self, header, tensors):
        reply, arrays = super().answer(header, tensors)
        return (dict(reply, error="ung\u00fcltig: " + reply["error"]) if "error" in reply else reply), arrays


plain = json.dumps
assay_iut.json.dumps = lambda header, **_: Text(plain(header, ensure_ascii=False))
assay_iut.Server = Server
batch_base.serve("latin1-error")
