"""The text of the models: the King James Bible of Debian's `bible-kjv`, split by chapter.

`bible -f` prints one verse a line, `Ge1:1 In the beginning ...`. The reference is taken off: what the
models learn and what they write is running text, one verse a line. A document is one chapter: BOS, the
bytes of its verses (each ending in a newline), EOS.

    train         what the models saw
    heldout       every tenth chapter of the Bible, counted from the first (10th, 20th, ...)
    repetitive    Numbers 7, Psalm 136, 1 Chronicles 1-9: text that repeats itself; never trained on, and
                  not part of `heldout` either
"""
import subprocess

BOS, EOS, VOCABULARY = 256, 257, 258
REPETITIVE = {"Num7", "Psa136"} | {"1Chr%d" % i for i in range(1, 10)}


def chapters():
    """[(name, bytes)], the 1189 chapters in order."""
    printed = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], check=True, capture_output=True).stdout
    books = {}
    for line in printed.decode("ascii").splitlines():
        reference, verse = line.split(" ", 1)
        books.setdefault(reference.split(":")[0], []).append(verse.rstrip() + "\n")
    assert len(books) == 1189, "bible-kjv printed %d chapters, not 1189" % len(books)
    return [(name, "".join(verses).encode()) for name, verses in books.items()]


def split():
    """{"train": [(name, bytes)], "heldout": ..., "repetitive": ...}"""
    sets = {"train": [], "heldout": [], "repetitive": []}
    for number, (name, text) in enumerate(chapters(), start=1):
        kind = "repetitive" if name in REPETITIVE else "heldout" if number % 10 == 0 else "train"
        sets[kind].append((name, text))
    return sets
