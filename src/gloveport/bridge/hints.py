"""Hints for errors that end a program: common mistakes of agents about globals, tools and engine features."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

from gloveport.catalog import Catalog
from gloveport.suggestions import fold, question
from gloveport.types import Failure

MAX_MESSAGE_CHARS = 300
_UNDEFINED_NAME = re.compile(r"(?:name ')?([\w$]+)(?:')? is not defined")
_NO_FILES = "there is no file system, only the files of a session; get data through `tools.*` or pass it as `input`"
_FILES = "the files of the session are in the working directory: see `os.listdir()`, or `files.list()` in JavaScript"
_NO_NETWORK = "raw sockets and custom DNS are refused: use `fetch` or `urllib.request`, or call a tool"
_NO_PROCESSES = "processes and raw sockets are refused: call a tool, or use `fetch` and the standard library"
_NO_WEB_SOCKETS = "WebSockets and event streams are refused: use `fetch`, or call a tool"
_UNAVAILABLE: dict[str, tuple[str, str | None]] = {
    "Deno": ("there are no files, processes or sockets here: use `fetch`, call a tool, or pass data as `input`", None),
    **dict.fromkeys(("WebSocket", "WebSocketStream", "EventSource", "XMLHttpRequest"), (_NO_WEB_SOCKETS, None)),
    "files": (_NO_FILES, None),
    "input": ("the run was given no input: pass it beside the program", "pass input=… to run"),
    "WebAssembly": ("WebAssembly is off here", "set allow_wasm=True for the port, or allow_wasm = true below [sandbox]"),
}
_ONLY_DENO = frozenset(
    {"AbortController", "Blob", "Buffer", "EventTarget", "FormData", "Headers", "Intl"}
    | {"Request", "Response", "Temporal", "URL", "URLSearchParams"}
)
_FILE_ERRORS = frozenset(
    {"FileNotFoundError", "FileExistsError", "IsADirectoryError", "NotADirectoryError", "PermissionError", "OSError"}
    | {"OperationalError", "NotFound"}
)
_FILE_MESSAGE = re.compile(r"Read-only file system|unable to open database file|directory|: '[^']*'\Z")
_DICT_ATTRIBUTE = re.compile(r"'dict' object has no attribute '(\w+)'")
_NETWORK_ERRORS = frozenset({"gaierror", "URLError", "ConnectionError", "ConnectionRefusedError", "herror"})
_PYTHON_NAMES = frozenset(
    [
        "print",
        "len",
        "str",
        "dict",
        "list",
        "range",
        "sorted",
        "sum",
        "enumerate",
        "zip",
        "int",
        "float",
        "None",
        "True",
        "False",
    ]
)
_SCRIPT_NAMES = frozenset(
    ["console", "JSON", "Math", "Object", "Array", "Promise", "Number", "String", "Map", "Set", "Date", "undefined"]
)
_IS_PYTHON = 'this looks like Python: set the language to "python"'
_IS_SCRIPT = 'this looks like JavaScript: set the language to "typescript"'
_EVAL_OFF = (
    "eval and new Function are off here: write the code out",
    "set allow_eval=True for the port, or allow_eval = true below [sandbox]",
)


def with_hint(failure: Failure, catalog: Catalog, *, has_files: bool = False) -> Failure:
    """Return the failure with a hint on what to write or allow instead, if it has none and is a known mistake.

    A run with a session has files.
    """
    if failure.hint:
        return failure
    hint, setting = _advice(failure, catalog, has_files)
    return replace(failure, hint=hint, setting=setting or failure.setting)


def is_name_error(failure: Failure) -> bool:
    """Return True when an undefined name ended the program."""
    return failure.type in ("ReferenceError", "NameError")


def _advice(failure: Failure, catalog: Catalog, has_files: bool) -> tuple[str | None, str | None]:
    """Return the hint for the author of the program, and the setting for the person who runs it."""
    if failure.type == "EvalError":
        return _EVAL_OFF
    if not is_name_error(failure):
        return _platform_hint(failure, has_files), None
    found = _UNDEFINED_NAME.fullmatch(failure.message[:MAX_MESSAGE_CHARS])
    name = found[1] if found else ""
    if name in _UNAVAILABLE:
        return _UNAVAILABLE[name]
    if name in _ONLY_DENO:  # `prepare` reports it, unless the name is in text that the program evaluates
        return "only the engine `deno` has it", 'run it with engine="deno"'
    if mistake := _language_hint(failure, name):
        return mistake, None
    similar = [path for path in catalog.suggest(name) if fold(path.rpartition(".")[2]) == fold(name)] if name else []
    named = [catalog.path_of(tool) for path in similar if (tool := catalog.find(path))]  # as a search shows them
    return question([f"tools.{path}(…)" for path in named]) if named else None, None


def _platform_hint(failure: Failure, has_files: bool) -> str | None:
    """Return the hint for a program that looks for files, a network, processes, or a key that a dict lacks."""
    if failure.type == "AttributeError" and (found := _DICT_ATTRIBUTE.fullmatch(failure.message[:MAX_MESSAGE_CHARS])):
        return f'a tool\'s objects are dicts in Python: write `["{found[1]}"]` instead of `.{found[1]}`'
    if failure.type == "KeyError":
        return "look at the keys: `list(value)` has those of a dict, `await tools.describe(path)` those of a tool's result"
    if failure.type in _NETWORK_ERRORS:
        return _NO_NETWORK
    if failure.type not in _FILE_ERRORS:
        return None
    if _FILE_MESSAGE.search(failure.message[:MAX_MESSAGE_CHARS]):
        return _FILES if has_files else _NO_FILES
    return _NO_PROCESSES if failure.type == "PermissionError" else None


def _language_hint(failure: Failure, name: str) -> str | None:
    """Return the hint for a name that another language has, or that this one writes in another way."""
    line = (failure.frame or "").partition("\n")[0][:MAX_MESSAGE_CHARS]
    if failure.type == "ReferenceError":
        if name in _PYTHON_NAMES:
            return _IS_PYTHON
        if re.search(rf"[(,]\s*{re.escape(name)}\s*=(?!=)", line):
            return f'pass one object: `{{{name}: …}}`; for a Python program, set the language to "python"'
        if re.search(rf"\|\s*{re.escape(name)}\s*=(?!=)", line):
            return f'declare it: `const {name} = …`; for a Python program, set the language to "python"'
        return None
    if name in _SCRIPT_NAMES:
        return _IS_SCRIPT
    if re.search(rf"[{{,]\s*{re.escape(name)}\s*:", line):
        return f'quote the keys of a dict, `{{"{name}": …}}`, or write `{name}=…`'
    return f"write `import {name}` first" if name in sys.stdlib_module_names else None
