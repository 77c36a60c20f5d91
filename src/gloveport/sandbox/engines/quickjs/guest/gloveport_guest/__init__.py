"""The guest side of the engine QuickJS: the Python process that an agent's JavaScript runs in.

`preload()` once in the process that is forked for each run, `main()` in the fork, with the socket as standard input and
output. The prelude (guest/javascript and guest/quickjs, one script) does all that is not frames or the engine itself.
"""

from .main import main, preload, rehearse

__all__ = ["main", "preload", "rehearse"]
