"""Reads `gloveport.toml` into a `Config`, and records the file and line of each value.

There may be two files: the user's own in the platform's config folder, and the project's in the working folder or the
nearest folder above it. They are merged key by key. Where both set a key, the project's file wins. A project's file that
was found, not named, is untrusted: what loosens the user's settings has no effect until the user has trusted it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal

from gloveport.errors import OptionError
from gloveport.folders import config_folder
from gloveport.loosening import LooseningSetting, are_trusted, reason_of
from gloveport.suggestions import did_you_mean, similar
from gloveport.types import Limits

CONFIG_FILE = "gloveport.toml"
SourceKind = Literal["openapi", "graphql", "mcp", "functions"]
SOURCE_KINDS: tuple[SourceKind, ...] = ("openapi", "graphql", "mcp", "functions")
TABLES = ("sources", "limits", "sandbox")
SANDBOX_KEYS = ("minimum", "allow_eval", "allow_wasm", "engines")
LIMIT_KEYS = tuple(item.name for item in fields(Limits))
MAX_CONFIG_BYTES = 32 * 1024
MAX_SETTINGS = 5000
MAX_KEY_PARTS = 20
MAX_SOURCES = 200
DEFAULT_RESPONSE_BYTES = 32 * 1024 * 1024
DEFAULT_TIMEOUT_SECONDS = 60
_WRITES: Mapping[str, tuple[str, ...]] = {"allow": ("*",), "deny": ()}


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """One `[sources.NAME]`: its kind, where its definition is, and what it may reach.

    `location` is a URL or a file; for an MCP server on stdio it is the argv. `base_url` overrides the definition's servers.
    `include`, `exclude` and `writes` are patterns over tool addresses without the source's name (`issues.*`); `writes`
    opens operations that write, `*` all of them. `credentials` maps a slot to the place of its secret
    (`env:GITHUB_TOKEN`). `variables` fill server variables. `env` is the whole environment of an MCP command. The source
    reaches loopback and private addresses only with `allow_private`. With `trust_annotations` an MCP server decides which
    of its tools only read. `settings` is the project's file that this source came from; it is empty for a source that the
    user wrote in code or in a file of their own. With `changes_yours`, that file changes a source of the user's own file.
    """

    name: str
    kind: SourceKind
    location: str | tuple[str, ...]
    base_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    credentials: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    writes: tuple[str, ...] = ()
    allow_private: bool = False
    verify_tls: bool = True
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    max_response_bytes: int = DEFAULT_RESPONSE_BYTES
    trust_annotations: bool = False
    settings: str = ""
    changes_yours: bool = False

    @property
    def pin_key(self) -> str:
        """The key of its accepted definition: this source of this settings file, at this location."""
        return "\n".join((self.settings, self.name, self.kind, repr(self.location)))

    def __post_init__(self) -> None:
        for name in ("include", "exclude", "writes"):
            value = getattr(self, name)
            if name == "writes" and isinstance(value, str):
                value = _WRITES.get(value)
            if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
                expected = '"allow", "deny", or a list of patterns' if name == "writes" else "a list of patterns"
                raise OptionError(f"{name} of the source {self.name} must be {expected}, not {getattr(self, name)!r:.60}")
            object.__setattr__(self, name, tuple(value))
        if self.kind not in SOURCE_KINDS:
            raise OptionError(
                f"the kind of the source {self.name} must be one of {', '.join(SOURCE_KINDS)}, not {self.kind!r:.40}"
            )
        if isinstance(self.location, list):
            object.__setattr__(self, "location", tuple(self.location))


@dataclass(frozen=True, slots=True)
class Config:
    """The merged settings; `origins` gives the file and line of each key (`sources.github.base_url`).

    `loosening` are the settings of a project's file (`project`) that loosen the user's. They have no effect unless
    `loosening_trusted`. `options` has the sections of sources without a kind, by name: they set options (as `SourceConfig`
    calls them) of a source that a command line names.
    """

    sources: tuple[SourceConfig, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    sandbox: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    project: Path | None = None
    loosening: tuple[LooseningSetting, ...] = ()
    loosening_trusted: bool = False
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def ignored(self) -> tuple[LooseningSetting, ...]:
        """The settings that have no effect because the user has not trusted them."""
        return () if self.loosening_trusted else self.loosening

    @property
    def places(self) -> dict[str, str]:
        """The file and line of each source, by name."""
        found = ((config.name, self.origins.get(f"sources.{config.name}.{config.kind}")) for config in self.sources)
        return {name: place for name, place in found if place}


def load_config(project: Path | None = None, *, user: Path | None = None) -> Config:
    """Return the merged settings of the user's file and the project's; a file that does not exist is an error if named.

    A project's file that was found, not named, is untrusted: its sources carry its path in `settings`, and what else in it
    loosens the user's settings is in `loosening`.
    """
    if project is not None and not project.is_file():
        raise OptionError(f"there is no file {project}", hint="`gloveport add` creates one")
    own = user or config_folder() / CONFIG_FILE
    found = project or find_project()
    layers = [_read(path) for path in (own, found) if path is not None and path.is_file()]
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        _forget_kinds(values, layer)
        for key, value in _leaves(layer.values):
            _put(values, key, value)
            origins[".".join(key)] = layer.place(key)
    _check_tables(values, origins)
    if len(values.get("sources", {})) > MAX_SOURCES:
        raise OptionError(f"there are more than {MAX_SOURCES} sources", hint="put some of them behind servers of their own")
    theirs = next((layer for layer in layers if layer.path == found != own and project is None), None)
    yours = next((layer for layer in layers if layer.path == own), None)
    loosening = _loosening(theirs, yours) if theirs else ()
    loosening_trusted = theirs is not None and bool(loosening) and are_trusted(theirs.path, loosening)
    if not loosening_trusted:
        _take_back(values, origins, loosening, yours)
    sources: list[SourceConfig] = []
    options: dict[str, Mapping[str, Any]] = {}
    for name, table in values.get("sources", {}).items():
        if _is_options_only(table):
            options[name] = {key: _option(f"sources.{name}", key, value, origins) for key, value in table.items()}
        else:
            base = _folder_of(name, layers)
            sources.append(_source(name, table, origins, base=base, theirs=theirs, yours=yours))
    return Config(
        tuple(sources),
        values.get("limits", {}),
        values.get("sandbox", {}),
        origins,
        tuple(layer.path for layer in layers),
        theirs.path if theirs else None,
        loosening,
        loosening_trusted,
        options,
    )


def config_from(given: Config | str | os.PathLike[str] | None) -> Config:
    """Return the given settings, or those of the named file; empty settings for None."""
    if given is None:
        return Config()
    return given if isinstance(given, Config) else load_config(Path(given))


def _loosening(theirs: _Layer, yours: _Layer | None) -> tuple[LooseningSetting, ...]:
    """Return the settings of a project's file that loosen the user's; sources are trusted one by one."""
    found: list[LooseningSetting] = []
    for table in (name for name in theirs.values if name != "sources"):
        for key, value in _table(theirs.values[table]).items():
            if reason := reason_of((table, key), value, yours.get(table, key) if yours else None):
                found.append(LooseningSetting(table, key, value, theirs.place((table, key)), reason))
    for name, section in theirs.sources.items():
        if _is_options_only({**(_table(yours.sources.get(name)) if yours else {}), **_table(section)}):
            for key, value in _table(section).items():
                place = theirs.place(("sources", name, key))
                reason = "it sets an option of a source that you name yourself"
                found.append(LooseningSetting(f"sources.{name}", key, value, place, reason))
    return tuple(found)


def _take_back(
    values: dict[str, Any], origins: dict[str, str], ignored: tuple[LooseningSetting, ...], yours: _Layer | None
) -> None:
    """Give each ignored setting the user's value again, or none."""
    for setting in ignored:
        path = tuple(setting.table.split(".", 1))
        table, own = values, yours.values if yours is not None else {}
        for part in path:
            table, own = table[part], _table(_table(own).get(part))
        origins.pop(setting.name, None)
        table.pop(setting.key, None)
        if yours is not None and own.get(setting.key) is not None:
            table[setting.key], origins[setting.name] = own[setting.key], yours.place((*path, setting.key))
        if not table and len(path) > 1:
            del values[path[0]][path[1]]


def find_project(start: Path | None = None) -> Path | None:
    """Return the `gloveport.toml` of the working folder or of the nearest folder above it."""
    here = (start or Path.cwd()).resolve()
    return next((folder / CONFIG_FILE for folder in (here, *here.parents) if _is_ours(folder / CONFIG_FILE)), None)


def _is_ours(path: Path) -> bool:
    """Whether this user or root owns the file; another user may have put one into a folder above, such as /tmp."""
    return path.is_file() and path.stat().st_uid in (os.getuid(), 0)


@dataclass(frozen=True, slots=True)
class _Layer:
    """One settings file: its values, and the lines of its tables and keys."""

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]

    @property
    def sources(self) -> Mapping[str, Any]:
        table = self.values.get("sources", {})
        return table if isinstance(table, Mapping) else {}

    def get(self, table: str, key: str) -> Any:
        """Return the value of a key in a table; None where the file has none."""
        return _table(self.values.get(table)).get(key)

    def place(self, key: tuple[str, ...]) -> str:
        """Return the place of a key as `gloveport.toml:12`; the file alone where the line is not found."""
        number = self.lines.get(key) or self.lines.get(key[:-1])
        return f"{self.path}:{number}" if number else str(self.path)


_KEY_PART = r"""(?:"[^"]*"|'[^']*'|[\w-]+)"""
_HEADER = re.compile(rf"\s*\[\s*({_KEY_PART}(?:\s*\.\s*{_KEY_PART})*)\s*\]")
_KEY = re.compile(rf"\s*({_KEY_PART})\s*[=.]")
_PARTS = re.compile(_KEY_PART)
# The time that tomllib takes for a dotted key is quadratic in its parts.
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:[\w\"'-]++[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}", re.MULTILINE)


def _line_numbers(text: str) -> dict[tuple[str, ...], int]:
    """Return the first line of each table and key, read off the text line by line."""
    found: dict[tuple[str, ...], int] = {}
    above: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            header = _HEADER.match(line)
            above = tuple(part.strip("\"'") for part in _PARTS.findall(header[1])) if header else ("",)
            found.setdefault(above, number)
        elif key := _KEY.match(line):
            found.setdefault((*above, key[1].strip("\"'")), number)
    return found


def _read(path: Path) -> _Layer:
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise OptionError(f"{path} is larger than {MAX_CONFIG_BYTES // 1024} KiB")
        text = path.read_text("utf-8")
        if _LONG_KEY.search(text):
            raise OptionError(f"{path} has a key of more than {MAX_KEY_PARTS} parts")
        values = tomllib.loads(text)
        if sum(1 for _ in _leaves(values)) > MAX_SETTINGS:
            raise OptionError(f"{path} has more than {MAX_SETTINGS:,} settings")
        return _Layer(path, values, _line_numbers(text))
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{path} is not valid TOML: {error}", hint="correct that line") from None
    except RecursionError:
        raise OptionError(f"{path} is nested too deeply", hint="no setting needs nested lists") from None
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} can't be read: {error}") from None


def _leaves(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and (value or not above):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _put(values: dict[str, Any], key: tuple[str, ...], value: Any) -> None:
    *above, last = key
    for part in above:
        inner = values.get(part)
        values[part] = inner = inner if isinstance(inner, dict) else {}
        values = inner
    values[last] = value


def _forget_kinds(values: dict[str, Any], layer: _Layer) -> None:
    """Drop the kind of every source to which a later file gives a kind: a source has exactly one."""
    known = values.get("sources", {})
    for name, table in layer.sources.items():
        if (
            not set(SOURCE_KINDS).isdisjoint(_table(table))
            and isinstance(known, dict)
            and isinstance(known.get(name), dict)
        ):
            for kind in SOURCE_KINDS:
                known[name].pop(kind, None)


def _folder_of(name: str, layers: list[_Layer]) -> Path:
    """Return the base folder of a source's relative paths: the folder of the file that gives its kind."""
    saying = [layer for layer in layers if not set(SOURCE_KINDS).isdisjoint(_table(layer.sources.get(name)))]
    return (saying or layers)[-1].path.parent


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _check_tables(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    for key, value in values.items():
        if key not in TABLES:
            raise _unknown("", key, TABLES, origins)
        if not isinstance(value, Mapping):
            raise OptionError(f"{_at(origins, key)}{key} must be a table: [{key}]")
    for table, known in (("sandbox", SANDBOX_KEYS), ("limits", LIMIT_KEYS)):
        for key in values.get(table, {}):
            if key not in known:
                raise _unknown(table, key, known, origins)
    for key, value in values.get("limits", {}).items():
        try:
            Limits(**{key: value})
        except OptionError as error:
            raise OptionError(f"{_at(origins, f'limits.{key}')}{error.message}", hint=error.hint) from None


# The type of each key of a source, and how a message names that type.
_TEXTS = "a table of texts"
_SECRET_KEYS = frozenset({"credentials", "headers", "env"})  # no message shows their values: one may be a secret
_KEYS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "base_url": (str, "a text"),
    "headers": (dict, _TEXTS),
    "include": (list, "a list of patterns"),
    "exclude": (list, "a list of patterns"),
    "credentials": (dict, _TEXTS),
    "variables": (dict, _TEXTS),
    "env": (dict, _TEXTS),
    "writes": ((str, list), '"allow", "deny", or a list of patterns'),
    "allow_private": (bool, "true or false"),
    "verify_tls": (bool, "true or false"),
    "trust_annotations": (bool, "true or false"),
    "timeout_seconds": ((int, float), "a number of seconds"),
    "max_response_bytes": (int, "a whole number"),
}


def _is_options_only(table: Any) -> bool:
    """Return whether a section has options of a source and no kind. One that is empty, or misspells a kind, is an error."""
    return isinstance(table, Mapping) and bool(table) and all(key in _KEYS for key in table)


def _source(
    name: str, table: Any, origins: Mapping[str, str], *, base: Path, theirs: _Layer | None, yours: _Layer | None
) -> SourceConfig:
    where = f"sources.{name}"
    if not isinstance(table, Mapping):
        raise OptionError(f"{_at(origins, where)}{where} must be a table: [{where}]")
    kinds: list[SourceKind] = [kind for kind in SOURCE_KINDS if kind in table]
    if misspelt := next((key for key in table if not kinds and _closest(key) in SOURCE_KINDS), None):
        raise _unknown(where, misspelt, (*SOURCE_KINDS, *_KEYS), origins)
    if len(kinds) != 1:
        problem = f"has more than one kind: {' and '.join(kinds)}" if kinds else "has no kind"
        hint = f"give it exactly one of {', '.join(SOURCE_KINDS)}"
        raise OptionError(f"{_at(origins, f'{where}.{next(iter(table), name)}')}[{where}] {problem}", hint=hint)
    options: dict[str, Any] = {}
    for key, value in table.items():
        if key == kinds[0]:
            continue
        options[key] = _option(where, key, value, origins)
    location = _location(where, kinds[0], table[kinds[0]], origins, base)
    if theirs is not None and name in theirs.sources:
        options |= {"settings": str(theirs.path), "changes_yours": yours is not None and name in yours.sources}
    return SourceConfig(name, kinds[0], location, **options)


def _closest(key: str) -> str | None:
    """Return the known source key closest to an unknown one."""
    known = (*SOURCE_KINDS, *_KEYS)
    return None if key in known else next(iter(similar(key, known)), None)


def _option(where: str, key: str, value: Any, origins: Mapping[str, str]) -> Any:
    if key not in _KEYS:
        raise _unknown(where, key, (*SOURCE_KINDS, *_KEYS), origins)
    kind, expected = _KEYS[key]
    wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
    if isinstance(value, (list, dict)):
        items = value.values() if isinstance(value, dict) else value
        wrong = wrong or not all(isinstance(item, str) for item in items)
    elif not isinstance(value, (bool, str, NoneType)):
        wrong = wrong or not value > 0 or value > 10**12  # refuses NaN and infinity, too
    if wrong:
        given = "" if key in _SECRET_KEYS else f", not {value!r:.60}"
        raise OptionError(f"{_at(origins, f'{where}.{key}')}{key} of [{where}] must be {expected}{given}")
    if key == "writes" and isinstance(value, str):
        if value not in _WRITES:
            raise OptionError(f"{_at(origins, f'{where}.{key}')}{key} of [{where}] must be {expected}, not {value!r:.60}")
        return _WRITES[value]
    return tuple(value) if isinstance(value, list) else value


def _location(where: str, kind: str, value: Any, origins: Mapping[str, str], base: Path) -> str | tuple[str, ...]:
    if kind == "mcp" and isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return tuple(value)
    if not isinstance(value, str) or not value:
        takes = "a URL, or a command as a list of texts" if kind == "mcp" else "a URL or a file"
        raise OptionError(f"{_at(origins, f'{where}.{kind}')}{kind} of [{where}] must be {takes}, not {value!r:.60}")
    is_module = kind == "functions" and not value.endswith(".py")
    return value if "://" in value or is_module else str((base / value).resolve())


def _unknown(where: str, key: str, known: tuple[str, ...], origins: Mapping[str, str]) -> OptionError:
    meant = did_you_mean(key, known)
    full = f"{where}.{key}" if where else key
    inside = f" in [{where}]" if where else ""
    message = f"{_at(origins, full)}there is no key `{key}`{inside}{f'; {meant}' if meant else ''}"
    return OptionError(message, hint=f"the keys are {', '.join(known)}")


def _at(origins: Mapping[str, str], key: str) -> str:
    """Return the prefix of a message, `gloveport.toml:12: `: the place of a key, or else of the first key below it."""
    exact = origins.get(key)
    below = next((place for name, place in origins.items() if name.startswith(f"{key}.")), None)
    place = exact or below
    return f"{place}: " if place else ""
