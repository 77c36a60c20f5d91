"""Hints for errors that end a program: common mistakes of agents about globals, tools and engine features."""

from __future__ import annotations

import re
from dataclasses import replace

from gloveport.catalog import Catalog
from gloveport.suggestions import fold, question
from gloveport.types import Failure

MAX_MESSAGE_CHARS = 300
_UNDEFINED_NAME = re.compile(r"(?:name ')?([\w$]+)(?:')? is not defined")
_UNAVAILABLE = {
    "input": ("the run was given no input: pass it beside the program", "pass input=… to run"),
    "WebAssembly": ("WebAssembly is off here", "create the port with allow_wasm=True"),
}
_ONLY_DENO = frozenset(
    {"AbortController", "Blob", "Buffer", "EventTarget", "FormData", "Headers", "Intl"}
    | {"Request", "Response", "Temporal", "URL", "URLSearchParams"}
)
_EVAL_OFF = ("eval and new Function are off here: write the code out", "create the port with allow_eval=True")


def with_hint(failure: Failure, catalog: Catalog) -> Failure:
    """Return the failure with a hint on what to write or allow instead, if it has none and is a known mistake."""
    if failure.hint:
        return failure
    hint, setting = _advice(failure, catalog)
    return replace(failure, hint=hint, setting=setting or failure.setting)


def is_name_error(failure: Failure) -> bool:
    """Return True when an undefined name ended the program."""
    return failure.type in ("ReferenceError", "NameError")


def _advice(failure: Failure, catalog: Catalog) -> tuple[str | None, str | None]:
    """Return the hint for the author of the program, and the setting for the person who runs it."""
    if failure.type == "EvalError":
        return _EVAL_OFF
    if not is_name_error(failure):
        return None, None
    found = _UNDEFINED_NAME.fullmatch(failure.message[:MAX_MESSAGE_CHARS])
    name = found[1] if found else ""
    if name in _UNAVAILABLE:
        return _UNAVAILABLE[name]
    if name in _ONLY_DENO:  # `prepare` reports it, unless the name is in text that the program evaluates
        return "only the engine `deno` has it", 'run it with engine="deno"'
    similar = [path for path in catalog.suggest(name) if fold(path.rpartition(".")[2]) == fold(name)] if name else []
    return question([f"tools.{path}(…)" for path in similar]) if similar else None, None
