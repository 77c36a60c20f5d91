"""Imports of a Python program: the standard library, an approved package, or a refusal with a hint."""

from __future__ import annotations

import ast
import re
import sys
from typing import NamedTuple

from gloveport.prepare.python.parser import LineIndex
from gloveport.suggestions import distance, fold, near, question
from gloveport.types import ModuleImport

AVAILABLE = sys.stdlib_module_names | {"__main__"}

_NETWORK = "there is no network: call a tool (`tools.search` finds one)"
_HTTP = (
    "use `(await fetch(url)).text()` or `urllib.request`, where the user has allowed the address, "
    "or call a tool (`tools.search` finds one)"
)
_SOCKETS = "WebSockets and raw sockets are refused: use `await fetch(url)` or `urllib.request`, or call a tool"
_DATA = "use the standard library (`statistics`, `math`, `csv`, `collections`, `itertools`)"
_OUTPUT = "return the data, or send it to the user with `emit(value)`"

_TABLE = [
    ("requests httpx aiohttp urllib3 httplib2 pycurl", _HTTP),
    ("websockets websocket socketio dns grpc", _SOCKETS),
    ("boto3 botocore openai anthropic", _NETWORK),
    ("google slack_sdk github stripe twilio paramiko redis pymongo psycopg psycopg2 sqlalchemy selenium mcp", _NETWORK),
    ("playwright fastmcp asyncpg aiofiles pymysql fastapi flask django starlette uvicorn", _NETWORK),
    ("numpy pandas scipy sklearn polars statsmodels torch tensorflow sympy networkx numba", _DATA),
    ("matplotlib seaborn plotly PIL cv2 altair bokeh IPython", _OUTPUT),
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
# Packages that could be approved, but not work: they open sockets.
_OPENS_SOCKETS = frozenset(name for name, hint in HINTS.items() if hint in (_HTTP, _SOCKETS))
_NEVER = frozenset({"tools", "codemode", "executor", "gloveport", "urllib2", "urlparse"})
_OLD = frozenset({"StringIO", "cStringIO", "cPickle", "Queue", "ConfigParser"})
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?")
_DISTRIBUTIONS = """
attr:attrs bs4:beautifulsoup4 cv2:opencv-python-headless dateutil:python-dateutil docx:python-docx dotenv:python-dotenv
fitz:pymupdf jose:python-jose jwt:pyjwt magic:python-magic markdown:markdown mpl_toolkits:matplotlib OpenSSL:pyopenssl
PIL:pillow pkg_resources:setuptools pptx:python-pptx psycopg2:psycopg2-binary rapidjson:python-rapidjson ruamel:ruamel-yaml
serial:pyserial skimage:scikit-image sklearn:scikit-learn slugify:python-slugify socks:pysocks usaddress:usaddress
websocket:websocket-client yaml:pyyaml zmq:pyzmq
"""
DISTRIBUTIONS = {module: name for module, _, name in (pair.partition(":") for pair in _DISTRIBUTIONS.split())}
"""The packages whose modules have other names than they."""
_POPULAR = """
babel bcrypt cachetools chardet dash duckdb emoji faker feedparser fire folium funcy geopy glom holidays humanize icalendar
inflect inflection jellyfish jinja2 jmespath jsonpath jsonschema lark mistune more_itertools moto nltk openpyxl passlib
peewee phonenumbers pint pycountry pypdf pyparsing qrcode rapidfuzz rope shapely six spacy textdistance thefuzz toolz tree
typer unidecode vobject wcwidth xlrd xlsxwriter xmltodict
"""
PACKAGED = HINTS.keys() | DISTRIBUTIONS.keys() | set(_POPULAR.split())
"""Modules of packages that agents like: none of them is the misspelt name of another module."""


class PythonImportRefusal(NamedTuple):
    """Why an import is refused, what to do instead, and where it stands in the code."""

    message: str
    hint: str
    start: int
    length: int
    package: str | None = None


def imported(imports: list[ast.Import | ast.ImportFrom], packages: frozenset[str]) -> tuple[ModuleImport, ...]:
    """Return the modules of approved packages that a program imports."""
    names = {name.partition(".")[0] for node in imports for name in _names(node) if name is not None}
    return tuple(ModuleImport(name, "package", "import") for name in sorted(names & packages))


def refused(
    imports: list[ast.Import | ast.ImportFrom], code: str, packages: frozenset[str] | None = None
) -> PythonImportRefusal | None:
    """Return the refusal of the first import that can't succeed; None when all can.

    `packages` are the modules of approved packages; None for an engine that can import none.
    """
    known = AVAILABLE if packages is None else AVAILABLE | packages
    unknown = [
        (node, alias) for node in imports for alias in _names(node) if alias is None or alias.partition(".")[0] not in known
    ]
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
    message, hint, package = _explained(name, packages)
    return PythonImportRefusal(message, hint, start, len(name), package)


def _names(node: ast.Import | ast.ImportFrom) -> list[str | None]:
    """Return the modules that a statement imports; None for a relative import."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [None if node.level else node.module]


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


def _explained(name: str, packages: frozenset[str] | None) -> tuple[str, str, str | None]:
    """Return what is wrong with an import, what to do instead, and the package that a person could approve."""
    module = name.partition(".")[0]
    message = f"import of `{_short(name)}` is refused: no package of that name is approved for this run"
    if module in _NEVER | _OLD or (module in _OPENS_SOCKETS and packages is not None):
        return message, HINTS[module], None
    meant = None if module in PACKAGED else _misspelt(module, packages or frozenset())
    package = None if packages is None else _package_of(module)
    if meant is not None and meant in AVAILABLE | (packages or frozenset()):
        message = f"import of `{_short(name)}` is refused: there is no such module; {question([meant])}"
        if package is None or distance(fold(module), fold(meant), 1) <= 1:  # a package of that name may be a trap
            return message, f"write `import {meant}`", None
        return message, f"write `import {meant}`, or ask the user to approve {package}", package
    instead = HINTS.get(meant or module, "use the standard library and `tools.*`")
    if packages is None:
        return f"import of `{_short(name)}` is refused: this engine has no packages", instead, None
    if meant is not None:
        return (
            message,
            f"{question([meant])} Ask the user to approve {_package_of(meant)}, or {instead}",
            _package_of(meant),
        )
    return message, f"ask the user to approve {package}, or {instead}" if package else instead, package


def _package_of(module: str) -> str | None:
    distribution = DISTRIBUTIONS.get(module, module.replace("_", "-").lower())
    return f"pypi:{distribution}" if _NAME.fullmatch(distribution) else None


def _misspelt(module: str, packages: frozenset[str]) -> str | None:
    public = [name for name in {*sys.stdlib_module_names, *packages, *PACKAGED} if not name.startswith("_")]
    close = near(module, public, limit=1) if 2 < len(module) <= 40 else ()
    return close[0] if close else None


def _short(name: str) -> str:
    return name if len(name) <= 60 else name[:60] + "…"
