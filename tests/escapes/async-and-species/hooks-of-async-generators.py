# Tries: hooks that the interpreter calls for every asynchronous generator, with it in hand.
# Origin: own idea: sys.set_asyncgen_hooks is for event loops.

import sys

found = []


def hook(generator):
    found.append(generator.ag_frame.f_builtins["open"](input["file"]).read())


sys.set_asyncgen_hooks(firstiter=hook, finalizer=hook)


async def give():
    yield 1


async for _ in give():
    break
found
