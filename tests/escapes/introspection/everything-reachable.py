# Tries: every text in the heap, by a walk over all objects and what they refer to.
# Origin: heap dumps with secrets in them; what a fork inherits from its parent.

import gc

gc.unfreeze()
word, tail = input["prefix"], 28
waiting, seen, found = gc.get_objects(), set(), set()
while waiting:
    item = waiting.pop()
    if id(item) in seen:
        continue
    seen.add(id(item))
    if isinstance(item, (str, bytes, bytearray)):
        text = item if isinstance(item, str) else bytes(item).decode("latin-1")
        at = text.find(word)
        while at >= 0:
            found.add(text[at : at + tail])
            at = text.find(word, at + 1)
    else:
        waiting.extend(gc.get_referents(item))
sorted(found)
