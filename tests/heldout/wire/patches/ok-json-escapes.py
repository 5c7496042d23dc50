# Variant: every letter of every text and key in a header is written as \uXXXX, which JSON permits.
import json
import re

import assay_iut
import batch_base


def escaped(text):
    return '"' + "".join(f"\\u{ord(c):04X}" for c in json.loads(text)) + '"'


plain = json.dumps
assay_iut.json.dumps = lambda header, **_: re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: escaped(m.group()), plain(header))
batch_base.serve("ok-json-escapes")
