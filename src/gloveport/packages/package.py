"""What a package is: its id, its approved record, and how a person asks for one (`npm:date-fns@4`, `pypi:tabulate`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from gloveport.errors import OptionError

Ecosystem = Literal["npm", "pypi"]
ECOSYSTEMS: tuple[Ecosystem, ...] = get_args(Ecosystem)
MAX_NAME_CHARS = 214

_NPM_NAME = re.compile(r"(?:@[a-z0-9~][a-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*")
_PYPI_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
MAX_PACKAGE_CHARS = len("npm:") + MAX_NAME_CHARS
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,127}")
_SPECIFIER = re.compile(r"[\x20-\x7e]{1,200}")
_EXAMPLE = "write it as npm:date-fns, npm:date-fns@4, pypi:tabulate or pypi:numpy==2.1.0"


@dataclass(frozen=True, slots=True, order=True)
class PackageId:
    """One version of a package: `npm:date-fns@4.1.0`. The name of a PyPI package is in its normal form."""

    ecosystem: Ecosystem
    name: str
    version: str

    def __post_init__(self) -> None:
        check_name(self.ecosystem, self.name)
        if self.ecosystem == "pypi" and self.name != normal_name(self.name):
            raise OptionError(f"{self.name!r:.80} is not the normal form of a PyPI name")
        if not _VERSION.fullmatch(self.version):
            raise OptionError(f"{self.version!r:.80} is not the version of a package")

    def __str__(self) -> str:
        return f"{self.ecosystem}:{self.name}@{self.version}"

    @staticmethod
    def parse(text: str) -> PackageId:
        """Return the id that a text such as `npm:date-fns@4.1.0` names; raise OptionError if it names none."""
        ecosystem, _, rest = text.partition(":")
        name, _, version = rest.rpartition("@")
        return PackageId(_ecosystem(ecosystem, text), name, version)


@dataclass(frozen=True, slots=True)
class PackageRequest:
    """What a person asks for: a package, and which versions of it; an empty `versions` means the newest one."""

    ecosystem: Ecosystem
    name: str
    versions: str = ""

    def __post_init__(self) -> None:
        check_name(self.ecosystem, self.name)
        if self.versions and not _SPECIFIER.fullmatch(self.versions):
            raise OptionError(f"{self.versions!r:.80} does not say which versions of a package are meant", hint=_EXAMPLE)

    def __str__(self) -> str:
        joint = "@" if self.versions and self.ecosystem == "npm" else ""
        return f"{self.ecosystem}:{self.name}{joint}{self.versions}"

    @staticmethod
    def parse(text: str) -> PackageRequest:
        """Return what a text asks for; raise OptionError with an example if it is not understood."""
        prefix, _, rest = text.strip().partition(":")
        ecosystem = _ecosystem(prefix, text)
        if ecosystem == "npm":
            name, _, versions = rest[1:].partition("@")
            return PackageRequest("npm", rest[:1] + name, versions.strip())
        matched = re.match(r"[A-Za-z0-9._-]*", rest)
        name, versions = rest[: matched.end() if matched else 0], rest[len(matched[0]) if matched else 0 :].strip()
        if versions.startswith("@"):  # as for npm: an exact version
            versions = f"=={versions[1:]}"
        if versions.startswith("["):
            raise OptionError(f"{text!r:.80}: extras are not supported", hint="name the packages of the extra themselves")
        check_name("pypi", name)
        if versions and versions[0] not in "=<>!~":
            raise OptionError(f"{text!r:.80} does not say which versions are meant", hint=_EXAMPLE)
        return PackageRequest("pypi", normal_name(name), versions)


@dataclass(frozen=True, slots=True)
class Package:
    """An approved package. `integrity` is the hash of the registry's archive, `sha512-…` or `sha256-…` in base64.

    `requires` are the packages that it imports, exactly as they were resolved. `modules` are the names that a program can
    import from it. A `native` one holds machine code. `size` is that of its files in bytes, and `content` their digest.
    """

    id: PackageId
    integrity: str
    requires: tuple[PackageId, ...] = ()
    modules: tuple[str, ...] = ()
    native: bool = False
    size: int = 0
    content: str = ""


def normal_name(name: str) -> str:
    """Return the normal form of a PyPI name: `Ruamel.YAML` is `ruamel-yaml`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def check_name(ecosystem: Ecosystem, name: str) -> None:
    """Raise OptionError unless a package of this ecosystem can have the name. A valid name is a safe part of a URL."""
    pattern = _NPM_NAME if ecosystem == "npm" else _PYPI_NAME
    if len(name) > MAX_NAME_CHARS or not pattern.fullmatch(name):
        raise OptionError(f"{name!r:.80} is not the name of a package of {ecosystem}", hint=_EXAMPLE)


def _ecosystem(prefix: str, text: str) -> Ecosystem:
    for ecosystem in ECOSYSTEMS:
        if prefix == ecosystem:
            return ecosystem
    raise OptionError(f"{text!r:.80} does not say where the package comes from", hint=_EXAMPLE)
