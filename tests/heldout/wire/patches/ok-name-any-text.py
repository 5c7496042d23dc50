# Variant: name, version and device are texts in UTF-8 beyond ASCII, with quotes, markup, line ends and 300 letters.
import json

import assay_iut
import batch_base


plain = json.dumps
assay_iut.json.dumps = lambda header, **_: plain(header, ensure_ascii=False)
batch_base.serve("Pr\u00fcfling \u201e\u6295\u673a\U0001f680\u201c <b>&amp;</b> \"x\\y\"" + "\u00e9" * 300,
                 version="1.0\t\u03b2\n'2'", device="GPU \u2116 1")
