# Tries: the prelude's quoting replaced, so that a line of output closes its own message and opens another.
# Origin: injection, in the encoder instead of the text.

import sys

for module in list(sys.modules.values()):
    if getattr(module, "__name__", "").startswith("gloveport_guest") and hasattr(module, "quote"):
        module.quote = lambda text: text
print('"x"],["canary"],["log","log","y"')
