"""PyPI: resolves requests and their dependencies with an index, and fetches wheels. Nothing is built, no script is run.

Python has one version of each package in an environment, so the store has one, too. A wheel says what it requires, so it is
fetched to be resolved; when a later requirement excludes a chosen version, the resolution begins again with both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from gloveport import urls
from gloveport.errors import PackageError, ToolError
from gloveport.large_values import off_loop_if
from gloveport.packages.fetched import FetchedPackage, RunTask, UnpackedArchive, unpack
from gloveport.packages.package import Package, PackageId, PackageRequest, normal_name
from gloveport.packages.registries import Registry, RegistryClient, integrity_of, one_of, pypi_indexes, read_json
from gloveport.policy.egress import Reply
from gloveport.suggestions import similar

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
MAX_CLOSURE = 150
MAX_RESTARTS = 25
MAX_REQUIREMENT_CHARS = 1000
MAX_HTML_BYTES = 16 * 1024 * 1024
_SLOW_BYTES = 64 * 1024
_LINK = re.compile(r"<a(\s(?:[^<>\"']++|\"[^\"<]{0,4000}+\"|'[^'<]{0,4000}+')*+)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([a-zA-Z-]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')")


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel of an index that this Python could use. A smaller `rank` fits better."""

    version: Version
    url: str
    integrity: str
    rank: int
    registry: Registry


@dataclass(slots=True)
class _Wish:
    """What the resolution wants of one package so far, and who wants it."""

    versions: SpecifierSet = field(default_factory=SpecifierSet)
    extras: set[str] = field(default_factory=set)
    by: list[str] = field(default_factory=list)


class PypiResolver:
    """Resolves packages of PyPI for the Python that runs programs. Approved versions stay as they are."""

    def __init__(self, client: RegistryClient, approved: Mapping[PackageId, Package]) -> None:
        self._client = client
        self._approved = {each.name: package for each, package in approved.items() if each.ecosystem == "pypi"}
        self._tags: dict[Tag, int] = {tag: rank for rank, tag in enumerate(sys_tags())}
        self._wheels: dict[str, list[Wheel]] = {}
        self._unpacked: dict[str, UnpackedArchive] = {}
        self._wishes: dict[str, _Wish] = {}

    async def fetch(self, requests: Sequence[PackageRequest], run_task: RunTask) -> list[FetchedPackage]:
        """Return the packages that are not approved yet: those asked for, and all that they require."""
        wishes = self._wishes = {}
        for request in requests:
            try:
                _widen(wishes, request.name, SpecifierSet(request.versions), (), "you")
            except InvalidSpecifier:
                raise PackageError(f"{request}: {request.versions!r:.80} names no versions") from None
        for _ in range(MAX_RESTARTS):
            chosen = await self._attempt(wishes, [request.name for request in requests], run_task)
            if chosen is not None:
                return [self._fetched(wheel, name, chosen) for name, wheel in chosen.items() if wheel is not None]
        raise PackageError(f"no versions fit together for {requests[0]}", hint="name the versions that you need")

    async def _attempt(
        self, wishes: dict[str, _Wish], roots: list[str], run_task: RunTask
    ) -> dict[str, Wheel | None] | None:
        """Return the wheel of each package, None for an approved one; or None when a wish came too late."""
        chosen: dict[str, Wheel | None] = {}
        expanded: dict[str, frozenset[str]] = {}
        todo = list(roots)
        while todo:
            name = todo.pop(0)
            wish = wishes[name]
            if name in chosen and not _fits(self._version(name, chosen), wish.versions):
                return None
            if name not in chosen:
                if len(chosen) >= MAX_CLOSURE:
                    raise PackageError(f"pypi:{roots[0]} requires more than {MAX_CLOSURE} packages")
                chosen[name] = await self._choose(name, wish)
            extras = frozenset(wish.extras)
            if expanded.get(name) == extras:
                continue
            expanded[name] = extras
            wheel = chosen[name]
            if wheel is None and not extras:
                continue  # approved with all that it requires
            for requirement in await self._requirements(name, wheel, extras, run_task):
                other = normal_name(requirement.name)
                _widen(wishes, other, requirement.specifier, requirement.extras, f"pypi:{name}")
                todo.append(other)
        return chosen

    def _version(self, name: str, chosen: Mapping[str, Wheel | None]) -> Version:
        wheel = chosen[name]
        return Version(self._approved[name].id.version) if wheel is None else wheel.version

    async def _choose(self, name: str, wish: _Wish) -> Wheel | None:
        approved = self._approved.get(name)
        if approved is not None:
            if not _fits(Version(approved.id.version), wish.versions):
                message = f"{approved.id} is approved, and {_who(wish)} pypi:{name}{wish.versions}"
                hint = f"Python has one version of a package: `gloveport packages remove pypi:{name}` first"
                raise PackageError(message, hint=hint)
            return None
        if name not in self._wheels:
            self._wheels[name] = await self._load(name)
        wheels = self._wheels[name]
        fitting = set(wish.versions.filter({wheel.version for wheel in wheels}))
        if not fitting:
            if not wheels:
                message = f"pypi:{name} has no wheel for this Python and machine"
                raise PackageError(message, hint="packages are never built here; another version may have a wheel")
            newest = max(wheel.version for wheel in wheels)
            message = f"pypi:{name} has no version{wish.versions}, which {_who(wish)}"
            raise PackageError(message, hint=f"its newest version is {newest}")
        best = max(fitting)
        return min((wheel for wheel in wheels if wheel.version == best), key=lambda wheel: wheel.rank)

    async def _requirements(
        self, name: str, wheel: Wheel | None, extras: frozenset[str], run_task: RunTask
    ) -> list[Requirement]:
        if wheel is None:
            raise PackageError(
                f"pypi:{name} is approved without its extras {', '.join(sorted(extras))}",
                hint=f"`gloveport packages remove pypi:{name}` first, then add them together",
            )
        if wheel.url not in self._unpacked:
            archive = await self._client.archive(wheel.url, wheel.registry, wheel.integrity)
            self._unpacked[wheel.url] = await unpack(run_task, "pypi", f"pypi:{name}", archive)
        return list(_needed(self._unpacked[wheel.url].texts("requires"), extras))

    async def _load(self, name: str) -> list[Wheel]:
        for registry in pypi_indexes():
            reply = await self._client.get(f"{registry.url}{name}/", registry, accept=ACCEPT)
            if reply.status == 200:
                try:
                    return await off_loop_if(len(reply.body) > _SLOW_BYTES, self._wheels_in, name, reply, registry)
                except ValueError as problem:
                    raise PackageError(f"{registry.origin} answers with no index of pypi:{name}: {problem}") from None
        meant = similar(name, POPULAR)
        raise PackageError(f"there is no package pypi:{name}", hint=f"did you mean pypi:{meant[0]}?" if meant else None)

    def _wheels_in(self, name: str, reply: Reply, registry: Registry) -> list[Wheel]:
        is_json = "json" in reply.headers.get("content-type", "")
        if not is_json and len(reply.body) > MAX_HTML_BYTES:
            raise ValueError(f"it has more than {MAX_HTML_BYTES:,} bytes of HTML")
        rows = _rows_of_json(read_json(reply.body)) if is_json else _rows_of_html(reply.body.decode(errors="replace"))
        found = (self._wheel(name, row, reply.url, registry) for row in rows)
        return [wheel for wheel in found if wheel is not None]

    def _wheel(self, name: str, row: Mapping[str, str], page: str, registry: Registry) -> Wheel | None:
        """Return a wheel of an index; None for one that is yanked, of another platform, or without a hash."""
        try:
            found, version, _, tags = parse_wheel_filename(row["filename"])
            rank = min(self._tags[tag] for tag in tags if tag in self._tags)
            if found != name or row.get("yanked") is not None:
                return None
            python = row.get("requires-python")
            if python and not SpecifierSet(python).contains(default_environment()["python_full_version"], prereleases=True):
                return None
            url = str(urls.join(urls.parse(page), row["url"]))
            return Wheel(version, url, integrity_of("sha256", row["sha256"]), rank, registry)
        except (InvalidWheelFilename, InvalidSpecifier, ValueError, KeyError, ToolError):
            return None

    def _fetched(self, wheel: Wheel, name: str, chosen: Mapping[str, Wheel | None]) -> FetchedPackage:
        unpacked = self._unpacked[wheel.url]
        stated = normal_name(str(unpacked.facts.get("name"))), _parsed(unpacked.facts.get("version"))
        if stated != (name, wheel.version):
            raise PackageError(f"the wheel of pypi:{name} {wheel.version} states another name or version")
        extras = frozenset(self._wishes[name].extras)
        needed = {normal_name(each.name) for each in _needed(unpacked.texts("requires"), extras)}
        requires = tuple(sorted(PackageId("pypi", each, str(self._version(each, chosen))) for each in needed - {name}))
        modules = tuple(text for text in unpacked.texts("modules") if text.isidentifier())
        about = Package(
            PackageId("pypi", name, str(wheel.version)), wheel.integrity, requires, modules, unpacked.native, unpacked.size
        )
        return FetchedPackage(about, unpacked.files, wheel.registry.origin)


def _widen(wishes: dict[str, _Wish], name: str, versions: SpecifierSet, extras: Iterable[str], by: str) -> None:
    wish = wishes.setdefault(name, _Wish())
    wish.versions &= versions
    wish.extras.update(normal_name(extra) for extra in extras)
    wish.by = [*dict.fromkeys((*wish.by, by))]


def _fits(version: Version, versions: SpecifierSet) -> bool:
    return versions.contains(version, prereleases=True)


def _who(wish: _Wish) -> str:
    first = wish.by[0]
    return "you ask for" if first == "you" else f"{first} requires"


def _parsed(version: Any) -> Version | None:
    try:
        return Version(str(version))
    except ValueError:
        return None


def _needed(stated: Iterable[str], extras: frozenset[str]) -> Iterable[Requirement]:
    """Yield the requirements that hold in the guests' environment, with these extras."""
    for text in stated:
        try:
            requirement = Requirement(text[:MAX_REQUIREMENT_CHARS])
        except InvalidRequirement:
            raise PackageError(f"a wheel states the requirement {text!a:.100}, which can't be read") from None
        if requirement.url:
            raise PackageError(
                f"a wheel requires {requirement.name} from a URL", hint="only packages of an index are fetched"
            )
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def _rows_of_json(page: Any) -> list[Mapping[str, str]]:
    rows: list[Mapping[str, str]] = []
    for file in one_of(page.get("files") if isinstance(page, dict) else None, (list,), []):
        if not isinstance(file, dict):
            continue
        row = {key: file[key] for key in ("filename", "url", "requires-python") if isinstance(file.get(key), str)}
        hashes = one_of(file.get("hashes"), (dict,), {})
        row["sha256"] = str(hashes.get("sha256", ""))
        rows.append(row | ({"yanked": "yes"} if file.get("yanked") else {}))
    return rows


def _rows_of_html(page: str) -> list[Mapping[str, str]]:
    """Return the links of an index's page. The time is linear in the text, as that of no parser of Python's own is."""
    rows: list[Mapping[str, str]] = []
    for tag in _LINK.finditer(page):
        about = {name.lower(): unescape(one or other) for name, one, other in _ATTRIBUTE.findall(tag[1])}
        if "href" not in about:
            continue
        url, _, fragment = about["href"].partition("#")
        row = {"url": url, "filename": url.rpartition("/")[2].replace("%2B", "+").replace("%2b", "+")}
        row["sha256"] = fragment.removeprefix("sha256=").partition("&")[0]
        row |= {key.removeprefix("data-"): about[key] for key in ("data-requires-python", "data-yanked") if key in about}
        rows.append(row)
    return rows


_POPULAR = (
    "beautifulsoup4 charset-normalizer chardet click httpx jinja2 jsonschema lxml markdown matplotlib more- "
    "itertools networkx numpy openpyxl orjson packaging pandas pendulum pillow pydantic pypdf python-dateutil "
    "python-docx pytz pyyaml rapidfuzz requests rich scikit-learn scipy sympy tabulate toml tqdm xlsxwriter "
)
POPULAR = tuple(_POPULAR.split())
"""Packages that agents ask for, to suggest one for a name that is misspelt."""
