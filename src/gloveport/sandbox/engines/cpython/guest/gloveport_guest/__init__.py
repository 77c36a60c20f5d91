"""The guest side of the CPython engine. It runs inside the jailed process, around the agent's program.

The zygote calls `preload()` once. Each fork calls `main()`, with the socket as standard input and output. One trial fork
calls `rehearse()`, to find out which memory a run touches. Everything that the program can observe arrives as one ordered
stream of events, so a run is a function of them.

    main.py        entry: get ready, wait for the program, run it
    guest.py       one program, from its start to its result
    program.py     the program's text → code objects → a coroutine
    loop.py        the event loop; threads.py runs threads inline
    wire.py        frames over the socket; values.py encodes values; errors.py describes exceptions
    tools.py       `tools.<source>.<path>(…)`; globals.py has the other globals
    output.py      log lines and emitted values
    clock.py, randomness.py, sqlite.py   time and randomness from the host; patching.py puts them in place
    rehearsal.py   a small program that warms caches before the fork
"""

from .main import main, preload, rehearse

__all__ = ["main", "preload", "rehearse"]
