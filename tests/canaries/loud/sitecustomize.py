"""Found by every Python process of the canary test: everything is logged, tracebacks with all their local variables."""

import logging
import os
import traceback


class _Telling(logging.Formatter):
    def formatException(self, ei):
        return "".join(traceback.TracebackException(*ei, capture_locals=True).format())


if folder := os.environ.get("CANARY_LOGS"):
    _handler = logging.FileHandler(os.path.join(folder, f"{os.getpid()}.log"))
    _handler.setFormatter(_Telling("%(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.DEBUG, handlers=[_handler])
