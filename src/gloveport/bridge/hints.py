"""What an error that a program did not catch most likely means: the mistakes that agents make about what they find."""

from __future__ import annotations

import re
from dataclasses import replace

from gloveport.catalog import Catalog
from gloveport.suggestions import fold
from gloveport.types import Failure

LONGEST = 300
_MISSING = re.compile(r"(?:name ')?([\w$]+)(?:')? is not defined")
_OFF = {
    "input": "the run was given no input: pass input=… to run, or --input on the command line",
    "WebAssembly": "WebAssembly is off here: Gloveport(allow_wasm=True), or --allow-wasm",
}
_ONLY_DENO = frozenset(
    {"AbortController", "Blob", "Buffer", "EventTarget", "FormData", "Headers", "Intl"}
    | {"Request", "Response", "Temporal", "URL", "URLSearchParams"}
)
_EVAL_OFF = "eval and new Function are off here: Gloveport(allow_eval=True), or --allow-eval"


def with_hint(failure: Failure, catalog: Catalog) -> Failure:
    """The failure, with a hint on what to write or to allow instead, where it has none and is one of these mistakes."""
    return failure if failure.hint else replace(failure, hint=_hint(failure, catalog))


def is_name_error(failure: Failure) -> bool:
    """Whether a name that nothing has ended the program."""
    return failure.type in ("ReferenceError", "NameError")


def _hint(failure: Failure, catalog: Catalog) -> str | None:
    if failure.type == "EvalError":
        return _EVAL_OFF
    if not is_name_error(failure):
        return None
    found = _MISSING.fullmatch(failure.message[:LONGEST])
    name = found[1] if found else ""
    if name in _OFF:
        return _OFF[name]
    if name in _ONLY_DENO:  # prepare tells of it, unless the name comes from a text that is evaluated
        return 'the engine `deno` has it: run it with engine="deno" (--engine deno)'
    meant = [path for path in catalog.suggest(name) if fold(path.rpartition(".")[2]) == fold(name)] if name else []
    return f"did you mean {' or '.join(f'tools.{path}(…)' for path in meant)}?" if meant else None
