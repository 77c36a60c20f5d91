"""Adds packages: resolves and fetches what a person asks for, and keeps what they then approve."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gloveport.errors import OptionError, PackageError
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.packages.esbuild import ensure_esbuild
from gloveport.packages.fetched import FetchedPackage
from gloveport.packages.npm import NpmResolver
from gloveport.packages.package import ECOSYSTEMS, Package, PackageId, PackageRequest, normal_name
from gloveport.packages.pypi import PypiResolver
from gloveport.packages.registries import RegistryClient
from gloveport.packages.store import PackageStore
from gloveport.policy.egress import Egress
from gloveport.store.event_log import EventLog
from gloveport.store.log_items import Statement
from gloveport.suggestions import did_you_mean
from gloveport.types import MIB, Strength

MAX_TOTAL_BYTES = 1024 * MIB


async def fetch_packages(
    requests: Sequence[PackageRequest], store: PackageStore, minimum: Strength
) -> tuple[FetchedPackage, ...]:
    """Return what would be added: the packages asked for and all that they require, fetched, checked and unpacked.

    Nothing of it is kept. A package that is approved already is left out. Archives are read in jailed processes.
    """
    egress, tasks = Egress(), DefinitionTasks(minimum)
    try:
        client, approved = RegistryClient(egress), store.approved()
        found: list[FetchedPackage] = []
        if of_npm := [request for request in requests if request.ecosystem == "npm"]:
            found += await NpmResolver(client, approved).fetch(of_npm, tasks.run)
        if of_pypi := [request for request in requests if request.ecosystem == "pypi"]:
            found += await PypiResolver(client, approved).fetch(of_pypi, tasks.run)
    finally:
        await tasks.close()
        await egress.close()
    for each in found:
        store.check_integrity(each.package.id, each.package.integrity)
    if sum(each.package.size for each in found) > MAX_TOTAL_BYTES:
        raise PackageError(f"these packages have more than {MAX_TOTAL_BYTES // MIB} MiB", hint="add fewer at a time")
    return tuple(sorted(found, key=lambda each: each.package.id))


async def fetch_bundler(store: PackageStore) -> None:
    """Fetch esbuild if it is not there: it bundles packages of npm and the project's own modules for programs."""
    egress = Egress()
    try:
        await ensure_esbuild(store, RegistryClient(egress))
    finally:
        await egress.close()


def keep_packages(found: Iterable[FetchedPackage], store: PackageStore, record: Path, asked: Sequence[str]) -> None:
    """Keep packages that a person has approved. What they are is recorded before the first is kept."""
    kept = tuple(found)
    packages = [
        {"package": str(each.package.id), "integrity": each.package.integrity, "registry": each.origin} for each in kept
    ]
    _record(record, "packages-added", {"asked": list(asked), "packages": packages})
    for each in kept:  # dependencies too are in `kept`: a program finds all or, if this is interrupted, is refused
        store.add(each.package, each.files)


def remove_packages(names: Sequence[str], store: PackageStore, record: Path) -> tuple[PackageId, ...]:
    """Remove packages by name or id, and return which; raise if one is unknown, or if others require it."""
    approved = store.approved()
    gone = tuple(dict.fromkeys(each for name in names for each in named_packages(name, approved)))
    for package in approved.values():
        if package.id not in gone and (needed := next((each for each in package.requires if each in gone), None)):
            hint = f"remove both: `gloveport packages remove {needed} {package.id}`"
            raise PackageError(f"{package.id} requires {needed}", hint=hint)
    _record(record, "packages-removed", {"packages": [str(each) for each in gone]})
    store.remove(gone)
    return gone


def named_packages(name: str, approved: Mapping[PackageId, Package]) -> tuple[PackageId, ...]:
    """Return the approved packages of a name such as `npm:date-fns` or `npm:date-fns@4.1.0`."""
    prefix, _, rest = name.partition(":")
    if prefix not in ECOSYSTEMS:
        raise OptionError(f"{name!r:.80} does not say where the package comes from", hint="write npm:NAME or pypi:NAME")
    wanted = f"pypi:{normal_name(rest)}" if prefix == "pypi" and "@" not in rest else name
    found = tuple(each for each in approved if wanted in (str(each), f"{each.ecosystem}:{each.name}"))
    if not found:
        known = {f"{each.ecosystem}:{each.name}" for each in approved}
        raise OptionError(f"the package {name!r:.80} is not approved", hint=did_you_mean(name, known))
    return found


def _record(path: Path, kind: str, body: Mapping[str, object]) -> None:
    stamp = Statement("INSERT OR REPLACE INTO store_state VALUES ('packages', ?)", (time.time_ns() // 1000,))
    EventLog.record_change(path, kind, body, stamp)
