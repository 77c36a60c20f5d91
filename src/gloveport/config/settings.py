"""Reads `gloveport.toml` into a `Config`, and records the file and line of each value.

There may be two files: the user's own in the platform's config folder, and the project's in the working folder or the
nearest folder above it. They are merged key by key. Where both set a key, the project's file wins. A project's file that
was found, not named, is untrusted: what loosens the user's settings has no effect until the user has trusted it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any

from gloveport.config.credential_references import SCHEMES, check_reference
from gloveport.config.governance import GovernanceConfig, governance_from, loosening_rules
from gloveport.config.layers import SettingsFile, as_table, leaves, place_prefix, put_value, read_layer, unknown_key
from gloveport.config.packages import PACKAGE_KEYS, PackagesConfig, packages_from
from gloveport.config.plugins import PluginConfig, plugins_from
from gloveport.config.sandbox_host import sandbox_host_from
from gloveport.config.serve import SERVE_KEYS, ServeConfig, serve_from
from gloveport.config.sessions import SESSIONS_KEYS
from gloveport.config.store import STORE_KEYS
from gloveport.errors import OptionError
from gloveport.folders import CONFIG_FILE, config_folder, find_project
from gloveport.limits import Limits
from gloveport.loosening import LooseningSetting, are_trusted, reason_of
from gloveport.suggestions import similar

SOURCE_KINDS = ("openapi", "graphql", "mcp", "functions")
"""The built-in kinds of sources. Plugins have more: which ones is known once they are loaded."""
TABLES = (
    *("sources", "limits", "sandbox", "rules", "egress", "policy", "approvals", "agents", "store", "serve"),
    *("sessions", "packages", "plugins"),
)
RULE_LISTS = ("rules", "egress")
_PLUGIN_KIND = re.compile(r"[a-z][a-z0-9_]{0,30}")
SANDBOX_KEYS = ("minimum", "allow_eval", "allow_wasm", "engines", "remote")
LIMIT_KEYS = tuple(item.name for item in fields(Limits))
MAX_SOURCES = 200
DEFAULT_RESPONSE_BYTES = 32 * 1024 * 1024
DEFAULT_TIMEOUT_SECONDS = 60
_WRITES: Mapping[str, tuple[str, ...]] = {"allow": ("*",), "deny": ()}
_ROOT_KEYS: Mapping[str, tuple[str, ...]] = {
    "sandbox": SANDBOX_KEYS,
    "limits": LIMIT_KEYS,
    "policy": ("preset",),
    "approvals": ("expiry_minutes", "hold_seconds", "notify"),
    "store": STORE_KEYS,
    "sessions": SESSIONS_KEYS,
    "serve": SERVE_KEYS,
    "packages": PACKAGE_KEYS,
}


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """One `[sources.NAME]`: its kind, where its definition is, and what it may reach.

    `location` is a URL or a file; for an MCP server on stdio it is the argv. `base_url` overrides the definition's servers.
    `include`, `exclude` and `writes` are patterns over tool addresses without the source's name (`issues.*`); `writes`
    opens operations that write, `*` all of them; with `denies_writes` (`writes = "deny"`) they are denied, and nobody is
    asked. `credentials` maps a slot to a reference to its secret (`env:GITHUB_TOKEN`). `variables` fill server variables.
    `env` is the whole environment of an MCP command. The source reaches private addresses only with `allow_private`.
    `undo` maps a write to the call that undoes it (`orders.create` to `orders.delete(id = result.id)`).
    `labels` are flow labels: a list for all its tools, or lists by pattern.
    With `trust_annotations` an MCP server decides which of its tools only read. `settings` is the project's file that this
    source came from; it is empty for a source that the user wrote in code or in a file of their own. With `changes_yours`,
    that file changes a source of the user's own file.
    """

    name: str
    kind: str
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
    denies_writes: bool = False
    undo: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
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
                object.__setattr__(self, "denies_writes", value == "deny")
                value = _WRITES.get(value)
            if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
                expected = '"allow", "deny", or a list of patterns' if name == "writes" else "a list of patterns"
                raise OptionError(f"{name} of the source {self.name} must be {expected}, not {getattr(self, name)!r:.60}")
            object.__setattr__(self, name, tuple(value))
        if not isinstance(self.kind, str) or not _PLUGIN_KIND.fullmatch(self.kind):
            known = ", ".join(SOURCE_KINDS)
            message = f"the kind of the source {self.name} must be one of {known}, or a plugin's, not {self.kind!r:.40}"
            raise OptionError(message)
        if isinstance(self.location, list):
            object.__setattr__(self, "location", tuple(self.location))
        if self.labels != {}:
            object.__setattr__(self, "labels", _checked_labels(self.labels, f"the source {self.name}"))


@dataclass(frozen=True, slots=True)
class Config:
    """The merged settings; `origins` gives the file and line of each key (`sources.github.base_url`).

    `loosening` are the settings of a project's file (`project`) that loosen the user's. They have no effect unless
    `loosening_trusted`. `watched` are the files that these settings come from, whether they exist or not; `named` is the
    one that the user named. `options` has the sections of sources without a kind, by name: they set options (as
    `SourceConfig` calls them) of a source that a command line names.
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
    governance: GovernanceConfig = field(default_factory=GovernanceConfig)
    watched: tuple[Path, ...] = ()
    named: Path | None = None
    serve: ServeConfig = field(default_factory=ServeConfig)
    plugins: tuple[PluginConfig, ...] = ()
    packages: PackagesConfig = field(default_factory=PackagesConfig)

    def reloaded(self) -> Config:
        """Return the settings as the same files state them now; raise OptionError."""
        own, *_ = self.watched
        return load_config(self.named, user=own)

    @property
    def ignored(self) -> tuple[LooseningSetting, ...]:
        """The settings that have no effect because the user has not trusted them."""
        return () if self.loosening_trusted else self.loosening

    @property
    def places(self) -> dict[str, str]:
        """The file and line of each source, by name."""
        found = ((config.name, self.origins.get(f"sources.{config.name}.{config.kind}")) for config in self.sources)
        return {name: place for name, place in found if place}


def _is_there(path: Path) -> bool:
    """Return whether there is such a file; raise OptionError where that can't be seen: it may hold the user's rules."""
    try:
        return path.is_file()
    except OSError as error:
        hint = f"let this user read {path.parent}, or set XDG_CONFIG_HOME to another folder"
        raise OptionError(f"the settings in {path.parent} can't be read: {error.strerror}", hint=hint) from None


def load_config(project: Path | None = None, *, user: Path | None = None) -> Config:
    """Return the merged settings of the user's file and the project's; a file that does not exist is an error if named.

    A project's file that was found, not named, is untrusted: its sources carry its path in `settings`, and what else in it
    loosens the user's settings is in `loosening`.
    """
    if project is not None and not _is_there(project):
        raise OptionError(f"there is no file {project}", hint="`gloveport add` creates one")
    own = user or config_folder() / CONFIG_FILE
    found = project or find_project()
    layers = [read_layer(path) for path in (own, found) if path is not None and _is_there(path)]
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        _forget_kinds(values, layer)
        for key, value in leaves(layer.values):
            put_value(values, key, value)
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
    has_plugins = "plugins" in values
    for name, table in values.get("sources", {}).items():
        if _is_options_only(table):
            options[name] = {
                key: _option(f"sources.{name}", key, value, origins, has_plugins) for key, value in table.items()
            }
        else:
            base = _folder_of(name, layers)
            given = {"base": base, "theirs": theirs, "yours": yours, "has_plugins": has_plugins}
            sources.append(_source(name, table, origins, **given))
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
        governance_from(values, origins, layers, None if loosening_trusted else theirs),
        tuple(path for path in (own, found) if path is not None),
        project,
        serve_from(values.get("serve", {}), origins),
        plugins_from(layers, theirs) if has_plugins else (),
        packages_from(values.get("packages", {}), origins, _folders("packages", origins, layers)),
    )


def _folders(table: str, origins: Mapping[str, str], layers: list[SettingsFile]) -> dict[str, Path]:
    """Return the folder of the file that each key of a table comes from: its relative paths start there."""
    found: dict[str, Path] = {}
    for name, place in origins.items():
        stated, _, key = name.partition(".")
        for layer in layers if stated == table else ():
            if layer.place((table, *key.split("."))) == place:
                found[key] = layer.path.parent
    return found


def config_from(given: Config | str | os.PathLike[str] | None) -> Config:
    """Return the given settings, or those of the named file; empty settings for None."""
    if given is None:
        return Config()
    return given if isinstance(given, Config) else load_config(Path(given))


def _loosening(theirs: SettingsFile, yours: SettingsFile | None) -> tuple[LooseningSetting, ...]:
    """Return the settings of a project's file that loosen the user's; sources are trusted one by one."""
    found: list[LooseningSetting] = []
    found += loosening_rules(theirs)
    for table in (name for name in theirs.values if name not in ("sources", *RULE_LISTS)):
        for key, value in as_table(theirs.values[table]).items():
            if reason := reason_of((table, key), value, yours.get(table, key) if yours else None):
                found.append(LooseningSetting(table, key, value, theirs.place((table, key)), reason))
    for name, section in theirs.sources.items():
        if _is_options_only({**(as_table(yours.sources.get(name)) if yours else {}), **as_table(section)}):
            for key, value in as_table(section).items():
                place = theirs.place(("sources", name, key))
                reason = "it sets an option of a source that you name yourself"
                found.append(LooseningSetting(f"sources.{name}", key, value, place, reason))
    return tuple(found)


def _take_back(
    values: dict[str, Any], origins: dict[str, str], ignored: tuple[LooseningSetting, ...], yours: SettingsFile | None
) -> None:
    """Give each ignored setting the user's value again, or none."""
    for setting in ignored:
        if setting.table in RULE_LISTS:  # those of each file are read from that file
            continue
        path = tuple(setting.table.split(".", 1))
        table, own = values, yours.values if yours is not None else {}
        for part in path:
            table, own = table[part], as_table(as_table(own).get(part))
        origins.pop(setting.name, None)
        table.pop(setting.key, None)
        if yours is not None and own.get(setting.key) is not None:
            table[setting.key], origins[setting.name] = own[setting.key], yours.place((*path, setting.key))
        if not table and len(path) > 1:
            del values[path[0]][path[1]]


def _forget_kinds(values: dict[str, Any], layer: SettingsFile) -> None:
    """Drop the kind of every source to which a later file gives a kind: a source has exactly one."""
    known = values.get("sources", {})
    for name, table in layer.sources.items():
        if _kinds_in(table) and isinstance(known, dict) and isinstance(known.get(name), dict):
            for kind in _kinds_in(known[name]):
                del known[name][kind]


def _folder_of(name: str, layers: list[SettingsFile]) -> Path:
    """Return the base folder of a source's relative paths: the folder of the file that gives its kind."""
    saying = [layer for layer in layers if _kinds_in(layer.sources.get(name))]
    return (saying or layers)[-1].path.parent


def _check_tables(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    for key, value in values.items():
        if key not in TABLES:
            raise unknown_key("", key, TABLES, origins)
        if not isinstance(value, Mapping) and key not in (*RULE_LISTS, "plugins"):
            raise OptionError(f"{place_prefix(origins, key)}{key} must be a table: [{key}]")
    for table, known in _ROOT_KEYS.items():
        for key in values.get(table, {}):
            if key not in known:
                raise unknown_key(table, key, known, origins)
    try:
        sandbox_host_from(values.get("sandbox", {}).get("remote"))
    except OptionError as error:
        key = next((key for key in origins if key.startswith("sandbox.remote")), "sandbox.remote")
        raise OptionError(f"{place_prefix(origins, key)}{error.message}", hint=error.hint) from None
    for key, value in values.get("limits", {}).items():
        try:
            Limits(**{key: value})
        except OptionError as error:
            raise OptionError(f"{place_prefix(origins, f'limits.{key}')}{error.message}", hint=error.hint) from None


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
    "undo": (dict, _TEXTS),
    "labels": ((list, dict), "a list of labels, or a table of such lists"),
    "writes": ((str, list), '"allow", "deny", or a list of patterns'),
    "allow_private": (bool, "true or false"),
    "verify_tls": (bool, "true or false"),
    "trust_annotations": (bool, "true or false"),
    "timeout_seconds": ((int, float), "a number of seconds"),
    "max_response_bytes": (int, "a whole number"),
}


def _kinds_in(table: Any) -> list[str]:
    """Return the keys of a source that are no options: its kind, as a rule."""
    return [key for key in as_table(table) if key not in _KEYS]


def _is_options_only(table: Any) -> bool:
    """Return whether a section has options of a source and no kind. One that is empty, or misspells a kind, is an error."""
    return isinstance(table, Mapping) and bool(table) and all(key in _KEYS for key in table)


def _source(
    name: str,
    table: Any,
    origins: Mapping[str, str],
    *,
    base: Path,
    theirs: SettingsFile | None,
    yours: SettingsFile | None,
    has_plugins: bool,
) -> SourceConfig:
    where = f"sources.{name}"
    if not isinstance(table, Mapping):
        raise OptionError(f"{place_prefix(origins, where)}{where} must be a table: [{where}]")
    kinds = [kind for kind in SOURCE_KINDS if kind in table]
    if not kinds and has_plugins:  # their kinds are known once they are loaded: opening names one that none has
        kinds = [key for key in _kinds_in(table) if _PLUGIN_KIND.fullmatch(key)]
    if misspelt := next((key for key in table if not kinds and _closest(key) in SOURCE_KINDS), None):
        raise unknown_key(where, misspelt, (*SOURCE_KINDS, *_KEYS), origins)
    if len(kinds) != 1:
        problem = f"has more than one kind: {' and '.join(kinds)}" if kinds else "has no kind"
        hint = f"give it exactly one of {', '.join(SOURCE_KINDS)}"
        raise OptionError(f"{place_prefix(origins, f'{where}.{next(iter(table), name)}')}[{where}] {problem}", hint=hint)
    options: dict[str, Any] = {}
    for key, value in table.items():
        if key == kinds[0]:
            continue
        options[key] = _option(where, key, value, origins, has_plugins)
    location = _location(where, kinds[0], table[kinds[0]], origins, base)
    if theirs is not None and name in theirs.sources:
        options |= {"settings": str(theirs.path), "changes_yours": yours is not None and name in yours.sources}
    return SourceConfig(name, kinds[0], location, **options)


def _checked_labels(labels: Any, of: str) -> Mapping[str, tuple[str, ...]]:
    from gloveport.rules.labels import check_stated  # here: it takes long, and few sources state labels

    return check_stated(labels, of)


def _closest(key: str) -> str | None:
    """Return the known source key closest to an unknown one."""
    known = (*SOURCE_KINDS, *_KEYS)
    return None if key in known else next(iter(similar(key, known)), None)


def _option(where: str, key: str, value: Any, origins: Mapping[str, str], has_plugins: bool = False) -> Any:
    if key not in _KEYS:
        raise unknown_key(where, key, (*SOURCE_KINDS, *_KEYS), origins)
    kind, expected = _KEYS[key]
    if key == "labels" and isinstance(value, kind):
        try:
            return _checked_labels(value, f"[{where}]")
        except OptionError as error:
            raise OptionError(f"{place_prefix(origins, f'{where}.{key}')}{error.message}", hint=error.hint) from None
    wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
    if isinstance(value, (list, dict)):
        items = value.values() if isinstance(value, dict) else value
        wrong = wrong or not all(isinstance(item, str) for item in items)
    elif not isinstance(value, (bool, str, NoneType)):
        wrong = wrong or not value > 0 or value > 10**12  # refuses NaN and infinity, too
    if wrong:
        given = "" if key in _SECRET_KEYS else f", not {value!r:.60}"
        raise OptionError(f"{place_prefix(origins, f'{where}.{key}')}{key} of [{where}] must be {expected}{given}")
    if key == "writes" and isinstance(value, str) and value not in _WRITES:
        raise OptionError(
            f"{place_prefix(origins, f'{where}.{key}')}{key} of [{where}] must be {expected}, not {value!r:.60}"
        )
    if key == "credentials" and isinstance(value, dict):
        for slot, reference in value.items():
            try:
                check_reference(where.partition(".")[2], slot, reference, None if has_plugins else SCHEMES)
            except OptionError as error:
                place = place_prefix(origins, f"{where}.{key}.{slot}")
                raise OptionError(f"{place}{error.message}", hint=error.hint) from None
    return tuple(value) if isinstance(value, list) else value


def _location(where: str, kind: str, value: Any, origins: Mapping[str, str], base: Path) -> str | tuple[str, ...]:
    if kind == "mcp" and isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return tuple(value)
    if not isinstance(value, str) or not value:
        takes = "a URL, or a command as a list of texts" if kind == "mcp" else "a URL or a file"
        raise OptionError(
            f"{place_prefix(origins, f'{where}.{kind}')}{kind} of [{where}] must be {takes}, not {value!r:.60}"
        )
    is_module = kind == "functions" and not value.endswith(".py")
    return value if "://" in value or is_module else str((base / value).resolve())
