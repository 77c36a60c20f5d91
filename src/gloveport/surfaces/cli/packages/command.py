"""What the commands of `gloveport packages` do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gloveport.errors import PackageError
from gloveport.host.options import strength_from
from gloveport.host.packages.package_additions import (
    fetch_bundler,
    fetch_packages,
    keep_packages,
    named_packages,
    remove_packages,
)
from gloveport.packages.package import Package, PackageRequest
from gloveport.packages.store import PackageStore
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.file_change import ask
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import visible_line
from gloveport.types import MIB


def add_command(view: ViewOptions, requests: Sequence[str], *, yes: bool) -> int:
    """Fetch packages, show them, ask, and keep them; return the exit code."""
    wanted = [PackageRequest.parse(text) for text in requests]
    settings, store = view.settings(quiet=True), PackageStore()
    minimum = strength_from(settings.sandbox.get("minimum", "kernel"))
    found = run_interruptible(fetch_packages(wanted, store, minimum))
    if not view.as_json:
        for each in found:
            _show(view, each.package, f"from {each.origin}")
    if found:
        count = f"{len(found)} package{'s' * (len(found) != 1)}"
        ask(
            f"Let programs import {'this' if len(found) == 1 else 'these'} {count}?",
            view.err,
            yes=yes,
            as_json=view.as_json,
        )
        keep_packages(found, store, settings.governance.store_path, [str(each) for each in wanted])
    if any(request.ecosystem == "npm" for request in wanted):
        _fetch_bundler(view, store)
    if view.as_json:
        write_document(view.out, {"ok": True, "added": [_document(each.package) for each in found]})
    else:
        text = "programs can import them now" if found else "all of them are approved already; nothing was changed"
        view.err.line(f"{view.err.paint('✓', 'green')} {text}")
    return 0


def _fetch_bundler(view: ViewOptions, store: PackageStore) -> None:
    try:
        run_interruptible(fetch_bundler(store))
    except PackageError as error:
        view.err.line(f"programs can't import packages of npm yet: {error.message}; add one again to fetch esbuild")


def list_command(view: ViewOptions) -> int:
    """List the approved packages; return the exit code."""
    approved = PackageStore().approved()
    if view.as_json:
        write_document(view.out, {"ok": True, "packages": [_document(approved[each]) for each in sorted(approved)]})
        return 0
    for each in sorted(approved):
        _show(view, approved[each], "")
    if not approved:
        view.err.line(as_typed("no package is approved: `gloveport packages add npm:NAME pypi:NAME` adds some"))
    return 0


def remove_command(view: ViewOptions, names: Sequence[str], *, yes: bool) -> int:
    """Remove packages; return the exit code."""
    store = PackageStore()
    approved = store.approved()
    gone = sorted({each for name in names for each in named_packages(name, approved)})
    ask(f"Remove {', '.join(map(str, gone))}?", view.err, yes=yes, as_json=view.as_json)
    removed = remove_packages(names, store, view.store_path)
    if view.as_json:
        write_document(view.out, {"ok": True, "removed": [str(each) for each in removed]})
    else:
        view.err.line(f"{view.err.paint('✓', 'green')} removed")
    return 0


def verify_command(view: ViewOptions) -> int:
    """Check the files of all packages; return the exit code."""
    store = PackageStore()
    approved = store.approved()
    wrong = {str(each): problem for each in sorted(approved) if (problem := store.verify(approved[each])) is not None}
    if wrong:
        shown = "; ".join(f"{name}: {problem}" for name, problem in wrong.items())
        hint = f"`gloveport packages remove {next(iter(wrong))}`, then add it again"
        raise PackageError(shown, code="package-changed", hint=hint, data={"changed": list(wrong)})
    if view.as_json:
        write_document(view.out, {"ok": True, "verified": len(approved)})
    else:
        view.err.line(f"{view.err.paint('✓', 'green')} {len(approved)} packages are exactly as approved")
    return 0


def _show(view: ViewOptions, package: Package, origin: str) -> None:
    out = view.err if origin else view.out
    size = f"{package.size / MIB:.1f} MB" if package.size >= MIB / 10 else f"{package.size / 1024:.1f} KB"
    about = ", ".join(filter(None, (size, "machine code" if package.native else "", origin)))
    out.line(f"{out.paint(visible_line(str(package.id)), 'bold')}  {visible_line(about)}")
    out.line(f"  {out.paint(package.integrity, 'dim')}")
    if package.requires:
        out.line(out.fold(visible_line(f"  requires {', '.join(map(str, package.requires))}"), indent="  "))


def _document(package: Package) -> dict[str, Any]:
    return {
        "package": str(package.id),
        "integrity": package.integrity,
        "requires": [str(each) for each in package.requires],
        "modules": list(package.modules),
        "native": package.native,
        "size": package.size,
    }
