"""The engines that run programs, one folder each: how it is launched, its guest code, and what its language lacks.

    engine.py         the `Engine` Protocol
    registry.py       the list of engines, and which one runs a program
    zygote_launch.py  how a Python process is started that guests are forked from (cpython, quickjs)
    javascript/       the prelude that the JavaScript engines share
    deno/ quickjs/ cpython/ monty/
        engine.py     host: how the engine is launched
        subset.py     host: what the engine's language lacks, refused or rewritten before the run
        guest/        guest: the prelude, source text that runs inside the jail and that nothing here imports

To add an engine, add a folder with an `engine.py` that defines `ENGINE`, and a line to `registry.py`.
"""
