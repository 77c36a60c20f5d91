"""The guest side of the CPython engine: what stands around an agent's program inside its sandboxed process.

`preload()` once in the process that is forked for each run, `main()` in the fork, with the socket as standard input and
output; `rehearse()` in a fork that only shows which memory a run touches. Everything that the program can observe arrives as one ordered stream of events: a run is a function of them.
"""

from .main import main, preload, rehearse

__all__ = ["main", "preload", "rehearse"]
