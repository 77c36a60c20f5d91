"""One settings file: its values, and the line of each of its keys."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gloveport.errors import OptionError
from gloveport.suggestions import did_you_mean

MAX_CONFIG_BYTES = 32 * 1024
MAX_SETTINGS = 5000
MAX_KEY_PARTS = 20


@dataclass(frozen=True, slots=True)
class SettingsFile:
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
        return as_table(self.values.get(table)).get(key)

    def place(self, key: tuple[str, ...]) -> str:
        """Return the place of a key as `gloveport.toml:12`; the file alone where the line is not found."""
        number = self.lines.get(key) or self.lines.get(key[:-1])
        return f"{self.path}:{number}" if number else str(self.path)


_KEY_PART = r"""(?:"[^"]*"|'[^']*'|[\w-]+)"""
_ARRAY_HEADER = re.compile(rf"\s*\[\[\s*({_KEY_PART}(?:\s*\.\s*{_KEY_PART})*)\s*\]\]")
_HEADER = re.compile(rf"\s*\[\s*({_KEY_PART}(?:\s*\.\s*{_KEY_PART})*)\s*\]")
_KEY = re.compile(rf"\s*({_KEY_PART})\s*[=.]")
_PARTS = re.compile(_KEY_PART)
# The time that tomllib takes for a dotted key is quadratic in its parts.
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:[\w\"'-]++[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}", re.MULTILINE)


def _line_numbers(text: str) -> dict[tuple[str, ...], int]:
    """Return the first line of each table and key, read off the text line by line. The third `[[rules]]` is `rules.2`."""
    found: dict[tuple[str, ...], int] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    above: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            header, item = _HEADER.match(line), _ARRAY_HEADER.match(line)
            above = _keys(header or item)
            if item:
                counts[above] += 1
                above = (*above, str(counts[above] - 1))
            found.setdefault(above, number)
        elif key := _KEY.match(line):
            found.setdefault((*above, key[1].strip("\"'")), number)
    return found


def _keys(header: re.Match[str] | None) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PARTS.findall(header[1])) if header else ("",)


def read_layer(path: Path) -> SettingsFile:
    """Return the settings of a file; raise OptionError."""
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise OptionError(f"{path} is larger than {MAX_CONFIG_BYTES // 1024} KiB")
        text = path.read_text("utf-8")
        if _LONG_KEY.search(text):
            raise OptionError(f"{path} has a key of more than {MAX_KEY_PARTS} parts")
        values = tomllib.loads(text)
        if sum(1 for _ in leaves(values)) > MAX_SETTINGS:
            raise OptionError(f"{path} has more than {MAX_SETTINGS:,} settings")
        return SettingsFile(path, values, _line_numbers(text))
    except RecursionError:
        raise OptionError(f"{path} is nested too deeply", hint="no setting needs nested lists") from None
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} can't be read: {error}") from None
    except ValueError as error:  # also for a number of thousands of digits
        raise OptionError(f"{path} is not valid TOML: {error}", hint="correct that line") from None


def leaves(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value that is no table, with its keys."""
    for key, value in values.items():
        if isinstance(value, Mapping) and (value or not above):
            yield from leaves(value, (*above, key))
        else:
            yield (*above, key), value


def put_value(values: dict[str, Any], key: tuple[str, ...], value: Any) -> None:
    """Set the value of a key; create the tables above it that are missing."""
    *above, last = key
    for part in above:
        inner = values.get(part)
        values[part] = inner = inner if isinstance(inner, dict) else {}
        values = inner
    values[last] = value


def as_table(value: Any) -> Mapping[str, Any]:
    """Return a value if it is a table, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def unknown_key(where: str, key: str, known: tuple[str, ...], origins: Mapping[str, str]) -> OptionError:
    """Return the error for a key that no settings have, with the one that was probably meant."""
    meant = did_you_mean(key, known)
    full = f"{where}.{key}" if where else key
    inside = f" in [{where}]" if where else ""
    message = f"{place_prefix(origins, full)}there is no key `{key}`{inside}{f'; {meant}' if meant else ''}"
    return OptionError(message, hint=f"the keys are {', '.join(known)}")


def place_prefix(origins: Mapping[str, str], key: str) -> str:
    """Return the prefix of a message, `gloveport.toml:12: `: the place of a key, or else of the first key below it."""
    exact = origins.get(key)
    below = next((place for name, place in origins.items() if name.startswith(f"{key}.")), None)
    place = exact or below
    return f"{place}: " if place else ""
