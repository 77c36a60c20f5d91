"""Reads and checks the arguments of `gloveport run`: the program, its language, its input, numbers and variables."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from gloveport.bounded_json import JsonLimitError
from gloveport.errors import OptionError
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.request_bounds import MAX_REQUEST_BYTES, check_json
from gloveport.types import MIB, Language

LANGUAGES: dict[str, Language] = {
    "typescript": "typescript",
    "ts": "typescript",
    "javascript": "javascript",
    "js": "javascript",
    "python": "python",
    "py": "python",
}
_EXTENSIONS: dict[str, Language] = {
    **dict.fromkeys((".ts", ".mts", ".cts", ".md", ".txt", ""), "typescript"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    ".py": "python",
}
HOW_TO_RUN = "write `gloveport run script.ts`, `gloveport run -e '1 + 1'`, or pipe a program into `gloveport run -`"


def read_program(file: str | None, code: str | None, language: str | None, max_bytes: int) -> tuple[str, Language]:
    """Return the program's text and language, from exactly one of a file, standard input and `-e`."""
    if file is not None and code is not None:
        raise OptionError("there are two programs: FILE and -e", hint="give only one of them")
    if code is not None:
        return code, _language(language, None)
    if file not in (None, "-"):
        if set(file) & set("();\n") and not os.path.exists(file):
            raise OptionError(f"there is no file {file[:80]!r}", hint="to run a text, write `gloveport run -e 'TEXT'`")
        data = _read_file(Path(file), max_bytes)
        return _decoded(data, file, max_bytes), _language(language, file)
    if sys.stdin is None or (file is None and sys.stdin.isatty()):
        raise OptionError("there is no program to run", hint=HOW_TO_RUN)
    if file == "-" and sys.stdin.isatty():
        print("Write the program, then press Ctrl-D.", file=sys.stderr)
    data = sys.stdin.buffer.read(max_bytes + 1)
    if not data.strip():
        raise OptionError("there is no program to run: standard input is empty", hint=HOW_TO_RUN)
    return _decoded(data, "standard input", max_bytes), _language(language, None)


def _language(given: str | None, file: str | None) -> Language:
    if given is not None:
        if given.lower() not in LANGUAGES:
            hint = did_you_mean(given, LANGUAGES) or "the languages are typescript, javascript and python"
            raise OptionError(f"there is no language `{given}`", hint=hint)
        return LANGUAGES[given.lower()]
    if file is None:
        return "typescript"
    extension = Path(file).suffix.lower()
    if extension not in _EXTENSIONS:
        hint = "give --language typescript, javascript or python"
        raise OptionError(f"`{extension}` does not say which language {file} is in", hint=hint)
    return _EXTENSIONS[extension]


def _read_file(path: Path, max_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(max_bytes + 1)
    except FileNotFoundError:
        hint = f"the working folder is {os.getcwd()}" if not path.is_absolute() else "check the path"
        raise OptionError(f"there is no file {path}", hint=hint) from None
    except IsADirectoryError:
        raise OptionError(f"{path} is a directory", hint="give a file in it") from None
    except OSError as error:
        raise OptionError(f"{path} can't be read: {error.strerror}", hint="check its permissions") from None


def _decoded(data: bytes, name: str, max_bytes: int) -> str:
    if len(data) > max_bytes:
        return data.decode("utf-8", "replace")  # too long in any case; the cut may have split a character
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"byte 0x{data[error.start]:02x} at offset {error.start:,}"
        raise OptionError(f"{name} is not UTF-8 text ({place})", hint="save it as UTF-8") from None


def read_input(text: str, *, stdin_taken: bool) -> Any:
    """Return the value of `--input`: JSON, or `@` and the name of a file with JSON (`@-` for standard input)."""
    if text == "@-" and stdin_taken:
        raise OptionError("standard input can't be both the program and its input", hint="put one of them in a file")
    return _read_json(text, "--input", '--input \'{"city": "Oslo"}\', or --input @file.json')


def _read_json(text: str, name: str, example: str) -> Any:
    """Return the value of a JSON text, or of the file that it names after an `@` (`@-` for standard input)."""
    if text.startswith("@"):
        name, size = text[1:], MAX_REQUEST_BYTES
        text = _decoded(sys.stdin.buffer.read(size + 1) if name == "-" else _read_file(Path(name), size), name, size)
    return parse_json(name, text, example=example)


VALUE_EXAMPLE = """'{"id": 7}', or @file.json"""
ARGUMENTS_EXAMPLE = """owner=ada, or '{"owner": "ada"}', or @file.json"""


def read_value(text: str) -> Any:
    """Return a value that is given as JSON, or as `@file`."""
    return _read_json(text, "the text of the value", VALUE_EXAMPLE)


def read_arguments(texts: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a tool, merged from JSON objects, files (`@file`, `-` for standard input) and `key=value`.

    The value of `key=value` is JSON if it can be read as JSON, and text otherwise.
    """
    args: dict[str, Any] = {}
    stdin_taken = False
    for text in texts:
        key, equals, value = text.partition("=")
        if equals and _ARGUMENT_NAME.fullmatch(key):
            args[key] = _json_or_text(value)
            continue
        whole = f"@{text}" if text == "-" else text
        stdin_taken, again = stdin_taken or whole == "@-", stdin_taken and whole == "@-"
        if again:
            raise OptionError("standard input can be read only once")
        given = _read_json(whole, "the text of the arguments", ARGUMENTS_EXAMPLE)
        if not isinstance(given, dict):
            raise OptionError("the arguments must be a JSON object", hint=f"for example {ARGUMENTS_EXAMPLE}")
        args |= given
    return args


_ARGUMENT_NAME = re.compile(r"[A-Za-z_][\w.-]*")


def _json_or_text(text: str) -> Any:
    try:
        return parse_json("the value", text, example="")
    except OptionError:
        return text


def parse_json(name: str, text: str, *, example: str) -> Any:
    """Return the value of a JSON text that the command line gives, within the bounds of a request."""
    try:
        check_json(text.encode("utf-8", "surrogatepass"))
        return json.loads(text, parse_constant=_not_json)
    except JsonLimitError as problem:
        raise OptionError(f"{name} {problem}", hint="pass less, or let a tool return it") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise OptionError(f"{name} is not JSON: {error.msg} ({place})", hint=f"write JSON, for example {example}") from None
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{name} is not JSON: {error}") from None


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON value")


def parse_env(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of `--env NAME=VALUE`."""
    out: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise OptionError(f"--env {pair} is not NAME=VALUE", hint="for example --env REGION=eu; a value may be empty")
        out[name] = value
    return out


def parse_seconds(option: str, text: str) -> float:
    """Return the number of seconds in the text of an option."""
    try:
        value = float(text)
    except ValueError:
        number = text.removesuffix("s").strip()
        example = number if _is_number(number) else "90"
        hint = f"{option} takes seconds as a plain number: {option} {example}"
        raise OptionError(f"{option} is not a number of seconds: {text!r}", hint=hint) from None
    if not math.isfinite(value) or value <= 0:
        raise OptionError(
            f"{option} must be a finite number of seconds above 0, not {text}", hint=f"for example {option} 90"
        )
    return value


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit() and text.isascii()


def parse_megabytes(option: str, text: str, smallest: int) -> int:
    """Return the whole number of megabytes in the text of an option."""
    try:
        value = int(text)
    except ValueError:
        hint = f"{option} takes megabytes as a plain whole number: {option} 256"
        raise OptionError(f"{option} is not a whole number of megabytes: {text!r}", hint=hint) from None
    if not smallest <= value <= MIB:
        raise OptionError(f"{option} must be from {smallest} to {MIB:,} megabytes, not {value:,}")
    return value
