"""Imports of a Python program: the standard library, or a refusal with a hint."""

from __future__ import annotations

import ast
import re
import sys
from typing import NamedTuple

from gloveport.prepare.python.parser import LineIndex
from gloveport.suggestions import near, question

AVAILABLE = sys.stdlib_module_names | {"__main__"}

_NETWORK = "there is no network: call a tool (`tools.search` finds one)"
_HTTP = "use `await fetch(url)` or `urllib.request`, where the user has allowed the address, or call a tool"
_SOCKETS = "WebSockets and raw sockets are refused: use `await fetch(url)` or `urllib.request`, or call a tool"
_DATA = "packages are not available: use the standard library (`statistics`, `math`, `csv`, `collections`, `itertools`)"
_OUTPUT = "return the data, or send it to the user with `emit(value)`"

_TABLE = [
    ("requests httpx aiohttp urllib3 httplib2 pycurl", _HTTP),
    ("websockets websocket socketio dns grpc", _SOCKETS),
    ("boto3 botocore openai anthropic", _NETWORK),
    ("google slack_sdk github stripe twilio paramiko redis pymongo psycopg psycopg2 sqlalchemy selenium mcp", _NETWORK),
    ("playwright fastmcp asyncpg aiofiles pymysql fastapi flask django starlette uvicorn", _NETWORK),
    ("numpy pandas scipy sklearn polars statsmodels torch tensorflow sympy networkx numba", _DATA),
    ("matplotlib seaborn plotly PIL cv2 altair bokeh IPython", f"packages are not available: {_OUTPUT}"),
    ("rich tqdm tabulate termcolor colorama click", f"use `print`; there is no terminal here: {_OUTPUT}"),
    ("bs4 lxml html5lib", "use `html.parser` or `xml.etree.ElementTree`"),
    ("yaml toml tomli", "use `json` or `tomllib`"),
    ("simplejson ujson orjson rapidjson msgspec", "use `json`"),
    ("pydantic attr attrs marshmallow", "use `dataclasses`; tools check their own arguments"),
    ("dateutil pytz arrow pendulum tzlocal", "use `datetime` and `zoneinfo`"),
    ("trio anyio gevent nest_asyncio uvloop", "use `asyncio`; `await` works at the top level"),
    ("dotenv environs decouple", "`os.environ` holds the variables that were passed to the run"),
    ("tools codemode executor gloveport", "tools need no import: call `tools.…` directly"),
    ("urllib2 urlparse", "this is Python 3: use `urllib.parse`"),
    ("StringIO cStringIO", "this is Python 3: use `io.StringIO`"),
    ("cPickle", "this is Python 3: use `pickle`"),
    ("Queue", "this is Python 3: use `queue`"),
    ("ConfigParser", "this is Python 3: use `configparser`"),
    ("typing_extensions", "use `typing`"),
    ("pytest", "check values with plain `assert`"),
    ("regex", "use `re`"),
]
HINTS = {name: hint for names, hint in _TABLE for name in names.split()}


class PythonImportRefusal(NamedTuple):
    """Why an import is refused, what to do instead, and where it stands in the code."""

    message: str
    hint: str
    start: int
    length: int


def refused(imports: list[ast.Import | ast.ImportFrom], code: str) -> PythonImportRefusal | None:
    """Return the refusal of the first import that can't succeed; None when all can."""
    unknown = [(node, alias) for node in imports for alias in _names(node) if alias is None or not _is_available(alias)]
    if not unknown:
        return None
    lines = LineIndex(code)
    node, name = min(unknown, key=lambda pair: (pair[0].lineno, pair[0].col_offset))
    start = _place(node, name, lines, code)
    if name is None:
        shown = _relative(node)
        hint = "a program is one file: include the code that it needs"
        return PythonImportRefusal(
            f"import of `{shown}` is refused: there is no package to be relative to", hint, start, len(shown)
        )
    return PythonImportRefusal(*_explained(name), start, len(name))


def _names(node: ast.Import | ast.ImportFrom) -> list[str | None]:
    """Return the modules that a statement imports; None for a relative import."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [None if node.level else node.module]


def _is_available(name: str) -> bool:
    return name.partition(".")[0] in AVAILABLE


def _relative(node: ast.Import | ast.ImportFrom) -> str:
    level, module = getattr(node, "level", 0), getattr(node, "module", "") or ""
    return _short("." * min(level, 100) + module)


_FROM = re.compile(r"from(?:\s|\\\r?\n?)*")


def _place(node: ast.Import | ast.ImportFrom, name: str | None, lines: LineIndex, code: str) -> int:
    if isinstance(node, ast.Import):
        return next(lines.start(alias) for alias in node.names if alias.name == name)
    start = lines.start(node)
    matched = _FROM.match(code, start)
    return matched.end() if matched else start


def _explained(name: str) -> tuple[str, str]:
    package = name.partition(".")[0]
    message = f"import of `{_short(name)}` is refused: no package is approved for this run"
    hint = HINTS.get(package)
    if hint:
        return message, hint
    meant = _misspelt(package)
    if meant:
        message = f"import of `{_short(name)}` is refused: there is no such module; {question([meant])}"
        return message, f"write `import {meant}`"
    return message, "use the standard library and `tools.*`"


def _misspelt(package: str) -> str | None:
    public = [name for name in sys.stdlib_module_names if not name.startswith("_")]
    close = near(package, public, limit=1) if 2 < len(package) <= 40 else ()
    return close[0] if close else None


def _short(name: str) -> str:
    return name if len(name) <= 60 else name[:60] + "…"
