"""Messages about what Monty does not support. Each names the feature and the engine that has it."""

from __future__ import annotations

import builtins
import re
import sys

from gloveport.sandbox.engines.monty.messages import Raised
from gloveport.sandbox.engines.monty.subset import HINT

CODE = "engine-lacks"
PARTIAL_HINT = "the engine `monty` has a part of Python's library; the engine `cpython` has all of it"

_OURS = "the engine `monty` has no "
_NOT_YET = re.compile(r"(.*?) (?:does not yet support|(?:is|are) not (?:yet )?supported)(.*)")
_INTERNAL = "Internal error in monty: "
_FIELDLESS = re.compile(r"'(\w+)' object has no attribute '\w+' and no __dict__ for setting new attributes")
_PARTLY = re.compile(r"module '\w+' has no attribute|cannot import name|type object '\w+' has no attribute")


def no_module(name: str) -> str:
    """Return the message for a module that can't be imported."""
    known = name.partition(".")[0] in sys.stdlib_module_names
    return f"{_OURS}module `{name}`" if known else f"No module named '{name}'"


def no_builtin(name: str) -> str | None:
    """Return the message for a built-in of Python that Monty lacks; None for an unknown name."""
    return f"{_OURS}`{name}`" if hasattr(builtins, name) and not name.startswith("_") else None


def explain(raised: Raised) -> dict[str, str]:
    """Return the fields of an error that reports a missing feature of Monty; none for any other error."""
    if raised.message.startswith(_OURS):
        return {"code": CODE, "message": raised.message, "hint": HINT}
    if raised.kind == "NotImplementedError" and (found := _NOT_YET.search(raised.message)):
        what = found[2] if "parser" in found[1] else f"{found[1]}{found[2]}"
        return {"code": CODE, "message": f"{_OURS}{what.strip()}", "hint": HINT}
    if raised.message.startswith(_INTERNAL):
        return {"code": CODE, "message": f"{_OURS}way to do this: {raised.message[len(_INTERNAL) :]}", "hint": HINT}
    if (found := _FIELDLESS.match(raised.message)) and issubclass(getattr(builtins, found[1], int), BaseException):
        return {"code": CODE, "message": f"{_OURS}exceptions with attributes", "hint": HINT}
    return {"hint": PARTIAL_HINT} if _PARTLY.search(raised.message) else {}
