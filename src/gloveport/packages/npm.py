"""npm: resolves requests and their dependencies with a registry, and fetches the packages. No script of one is run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gloveport import urls
from gloveport.errors import OptionError, PackageError, ToolError
from gloveport.large_values import off_loop_if
from gloveport.packages.fetched import FetchedPackage, RunTask, unpack
from gloveport.packages.package import Package, PackageId, PackageRequest, check_name
from gloveport.packages.registries import (
    SLOW_BYTES,
    Registry,
    RegistryClient,
    npm_registry,
    one_of,
    read_json,
    strongest,
    texts,
)
from gloveport.packages.semver import matches, newest, parse_range, parse_version
from gloveport.suggestions import similar

ACCEPT = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8"
MAX_CLOSURE = 400
_PARALLEL = 8


@dataclass(frozen=True, slots=True)
class _NpmDocument:
    """What a registry has about one package: its versions and its tags."""

    versions: Mapping[str, Any]
    tags: Mapping[str, str]
    registry: Registry


class NpmResolver:
    """Resolves packages of npm. A version that is approved already is preferred where it fits."""

    def __init__(self, client: RegistryClient, approved: Mapping[PackageId, Package]) -> None:
        self._client = client
        self._approved = {each: package for each, package in approved.items() if each.ecosystem == "npm"}
        self._documents: dict[str, asyncio.Task[_NpmDocument]] = {}
        self._gate = asyncio.Semaphore(_PARALLEL)
        self._chosen: dict[PackageId, tuple[PackageId, ...]] = {}

    async def fetch(self, requests: Sequence[PackageRequest], run_task: RunTask) -> list[FetchedPackage]:
        """Return the packages that are not approved yet: those asked for, and all that they require."""
        todo = [await self._choose(request.name, request.versions, "you", fresh=True) for request in requests]
        while todo:
            level = [each for each in dict.fromkeys(todo) if each not in self._chosen]
            if len(self._chosen) + len(level) > MAX_CLOSURE:
                raise PackageError(f"{requests[0]} requires more than {MAX_CLOSURE} packages")
            for each in level:
                self._chosen[each] = ()
            found = await asyncio.gather(*(self._requirements(each) for each in level))
            self._chosen.update(zip(level, found, strict=True))
            todo = [each for required in found for each in required]
        new = [each for each in self._chosen if each not in self._approved]
        return list(await asyncio.gather(*(self._fetch(each, run_task) for each in new)))

    async def _requirements(self, package: PackageId) -> tuple[PackageId, ...]:
        if package in self._approved:
            return self._approved[package].requires
        document = await self._document(package.name)
        found = await asyncio.gather(
            *(self._choose(*_aliased(name, range), str(package)) for name, range in _wanted(document, package).items())
        )
        return tuple(sorted(set(found)))

    async def _choose(self, name: str, versions: str, by: str, *, fresh: bool = False) -> PackageId:
        """Return the version of a package that fits: one that is in use already, else the newest."""
        try:
            check_name("npm", name)
        except OptionError:
            raise PackageError(f"{by} requires {name!r:.80}, which is no name of a package") from None
        wanted = versions.strip() or "latest"
        range = parse_range(wanted)
        if range is not None and not fresh:
            used = [each.version for each in (*self._chosen, *self._approved) if each.name == name]
            if version := newest(used, range):
                return PackageId("npm", name, version)
        document = await self._document(name)
        latest = document.tags.get("latest", "")
        if range is None:
            version = document.tags.get(wanted)
        elif (parsed := parse_version(latest)) and matches(parsed, range):
            version = latest
        else:
            version = newest((each for each in document.versions if not _is_deprecated(document, each)), range)
            version = version or newest(document.versions, range)
        if version is None or version not in document.versions:
            hint = f"its newest version is {latest}" if latest else None
            raise PackageError(f"npm:{name} has no version {wanted!r:.80}, which {_asks(by)}", hint=hint)
        return PackageId("npm", name, version)

    async def _document(self, name: str) -> _NpmDocument:
        if name not in self._documents:
            self._documents[name] = asyncio.ensure_future(self._load(name))
        return await self._documents[name]

    async def _load(self, name: str) -> _NpmDocument:
        registry = npm_registry(name)
        async with self._gate:
            reply = await self._client.get(registry.url + name.replace("/", "%2f"), registry, accept=ACCEPT)
        if reply.status == 404:
            meant = similar(name, POPULAR)
            hint = f"did you mean npm:{meant[0]}?" if meant else "check its name"
            raise PackageError(f"{registry.origin} has no package npm:{name}", hint=hint)
        try:
            found = await off_loop_if(len(reply.body) > SLOW_BYTES, read_json, reply.body)
            versions = one_of(found["versions"], (dict,), {})
            return _NpmDocument(versions, texts(found.get("dist-tags")), registry)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise PackageError(f"{registry.origin} answers with something else than npm:{name}") from None

    async def _fetch(self, package: PackageId, run_task: RunTask) -> FetchedPackage:
        document = await self._document(package.name)
        dist = texts(one_of(document.versions[package.version], (dict,), {}).get("dist"))
        integrity = strongest(dist.get("integrity", ""))
        if integrity is None:
            raise PackageError(f"{package} has no hash at {document.registry.origin}", hint="choose a newer version")
        try:
            url = str(urls.join(urls.parse(document.registry.url), dist.get("tarball", "")))
        except ToolError:
            raise PackageError(f"{package} has no archive at {document.registry.origin}") from None
        async with self._gate:
            archive = await self._client.archive(url, document.registry, integrity)
            unpacked = await unpack(run_task, "npm", package, archive)
        requires = self._chosen[package]
        about = Package(package, integrity, requires, (package.name,), unpacked.native, unpacked.size)
        return FetchedPackage(about, unpacked.files, document.registry.origin)


def _wanted(document: _NpmDocument, package: PackageId) -> dict[str, str]:
    """Return the names and ranges that a package imports. Optional dependencies are left out: they are machine code."""
    about = one_of(document.versions.get(package.version), (dict,), {})
    optional = texts(about.get("optionalDependencies"))
    peers_meta = one_of(about.get("peerDependenciesMeta"), (dict,), {})
    peers = {
        name: range
        for name, range in texts(about.get("peerDependencies")).items()
        if not one_of(peers_meta.get(name), (dict,), {}).get("optional")
    }
    bundled = one_of(about.get("bundleDependencies") or about.get("bundledDependencies"), (list,), [])
    found = {**peers, **texts(about.get("dependencies"))}
    return {
        name: range
        for name, range in found.items()
        if name not in optional and name not in bundled and not name.startswith("@types/")
    }


def _aliased(name: str, range: str) -> tuple[str, str]:
    """Return the package and range that `"a": "npm:b@1"` stands for."""
    if not range.startswith("npm:"):
        return name, range
    rest = range.removeprefix("npm:")
    real, _, versions = rest[1:].partition("@")
    return rest[:1] + real, versions


def _is_deprecated(document: _NpmDocument, version: str) -> bool:
    return bool(one_of(document.versions[version], (dict,), {}).get("deprecated"))


def _asks(by: str) -> str:
    return "you ask for" if by == "you" else f"{by} requires"


_POPULAR = (
    "ajv cheerio csv-parse date-fns dayjs decimal.js diff docx exceljs fast-xml-parser fuse.js handlebars "
    "immer js-yaml jszip lodash lodash-es luxon marked mathjs mustache nanoid papaparse pdf-lib qs ramda rxjs "
    "semver turndown uuid xlsx yaml zod "
)
POPULAR = tuple(_POPULAR.split())
"""Packages that agents ask for, to suggest one for a name that is misspelt."""
