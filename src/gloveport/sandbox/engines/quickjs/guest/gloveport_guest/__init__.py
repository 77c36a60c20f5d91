"""The guest side of the QuickJS engine: the Python process in which an agent's JavaScript runs.

The zygote calls `preload()` once. Each fork calls `main()`, with the socket as standard input and output. The prelude, one
script made of engines/javascript and the files beside this package, does everything but frames and the engine itself.
"""

from .main import main, preload, rehearse

__all__ = ["main", "preload", "rehearse"]
