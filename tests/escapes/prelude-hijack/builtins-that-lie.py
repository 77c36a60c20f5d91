# Tries: built-in functions that the prelude looks up, replaced by ones that lie: a length, with which messages are cut.
# Origin: JavaScript's primordials; Python looks builtins up anew at each call.

import builtins

length = builtins.len
builtins.len = lambda item: 3 if isinstance(item, bytes) else length(item)
print("x" * 1000)
builtins.len = length
await tools.add(1, 2)
