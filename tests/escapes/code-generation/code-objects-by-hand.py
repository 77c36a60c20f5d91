# Tries: the names inside of a code object exchanged after the compiler, and whoever checked its tree, has seen it.
# Origin: pyjail collections: code.replace.

made = lambda path: harmless(path).still_harmless()
made.__code__ = made.__code__.replace(co_names=("open", "read"))
made(input["file"])
