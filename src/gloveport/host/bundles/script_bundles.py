"""What JavaScript programs import of npm and of the project becomes one script.

esbuild makes it in the jail, once, and it is kept beside the packages under a digest of everything that it is made of.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gloveport.config.packages import PackagesConfig
from gloveport.packages.esbuild import VERSION, find_esbuild
from gloveport.packages.layout import lay_out, places
from gloveport.packages.module_folder import ModuleFolder
from gloveport.packages.package import Package, PackageId
from gloveport.packages.semver import newest, parse_range
from gloveport.packages.store import PackageStore
from gloveport.sandbox.start_event import RunModules
from gloveport.sandbox.tasks.bundler import BUNDLER, bundle
from gloveport.types import Importable, ModuleImport, Program, Strength

PROJECT = "gloveport-project"
"""The name under which the bundler finds the modules of the project. It begins like no package, and is never shown."""
_SPECIFIER = re.compile(r"\b(?:from|import|require)\s*\(?\s*[\"']([^\"'\s]{1,300})[\"']")
_REQUIRED = re.compile(r"\brequire\(\"(?:node:)?([a-z_]+(?:/[a-z_]+)?)\"\)")


@dataclass(frozen=True, slots=True)
class _Ingredients:
    """Everything that a script is made of."""

    imports: tuple[ModuleImport, ...]
    placed: Mapping[PurePosixPath, PackageId]
    approved: Mapping[PackageId, Package]
    files: Mapping[str, bytes]  # of the project, by path below its folder

    def digest(self) -> str:
        packages = [[str(place), str(each), self.approved[each].content] for place, each in sorted(self.placed.items())]
        files = [[path, hashlib.sha256(content).hexdigest()] for path, content in sorted(self.files.items())]
        imports = [[found.form, found.kind, found.name] for found in self.imports]
        made_of = [BUNDLER, VERSION, imports, packages, files]
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()


class ScriptBundles:
    """The scripts for the JavaScript programs of a port."""

    def __init__(self, minimum: Strength, settings: PackagesConfig, store: PackageStore) -> None:
        self._minimum: Strength = minimum
        self._folder: ModuleFolder | None = None
        if settings.modules is not None:
            self._folder = ModuleFolder(settings.modules, settings.modules_mount, settings.workspace_mount)
        self._store = store
        self._making: dict[str, asyncio.Task[str]] = {}

    async def importable(self, builtins: frozenset[str], allowed: Callable[[str], bool]) -> Importable:
        """Return what a program may import: an engine's modules, allowed packages (`npm:zod`), modules of the project."""
        return await asyncio.to_thread(self._importable, builtins, allowed)

    def _importable(self, builtins: frozenset[str], allowed: Callable[[str], bool]) -> Importable:
        names = {each.name for each in self._store.approved() if each.ecosystem == "npm"}
        packages = frozenset(name for name in names if allowed(f"npm:{name}"))
        if self._folder is None:
            return Importable(builtins, packages)
        mount = self._folder.mount
        files = frozenset(f"{mount}/{path}" for path in self._folder.files())
        return Importable(builtins, packages, files, mount, self._folder.workspace)

    async def modules(self, program: Program) -> RunModules | None:
        """Return the modules for what a program imports; None if it imports nothing. Raise PackageError."""
        if not program.imports:
            return None
        builtins = {found.name for found in program.imports if found.kind == "builtin"}
        others = tuple(found for found in program.imports if found.kind != "builtin")
        if not others:
            return RunModules(tuple(sorted(builtins)))
        importable = program.importable or Importable()
        ingredients = await asyncio.to_thread(self._ingredients, others, importable.packages)
        script = await self._script(ingredients)
        builtins |= importable.builtins & set(_REQUIRED.findall(script))
        return RunModules(tuple(sorted(builtins)), script)

    def _ingredients(self, imports: tuple[ModuleImport, ...], allowed: frozenset[str]) -> _Ingredients:
        approved = {each: package for each, package in self._store.approved().items() if each.ecosystem == "npm"}
        files: Mapping[str, bytes] = {}
        named = {_package_of(found.name) for found in imports if found.kind == "package"}
        if self._folder is not None and any(found.kind == "file" for found in imports):
            files = self._folder.read()
            texts = (content.decode(errors="replace") for content in files.values())
            named |= {_package_of(name.removeprefix("npm:")) for text in texts for name in _SPECIFIER.findall(text)}
        return _Ingredients(imports, places(_newest(named & allowed, approved), approved), approved, files)

    async def _script(self, ingredients: _Ingredients) -> str:
        digest = ingredients.digest()
        kept = self._store.folder / "bundles" / f"{digest}.js"
        try:
            return await asyncio.to_thread(kept.read_text, "utf-8")
        except FileNotFoundError:
            pass
        if digest not in self._making:
            made = self._making[digest] = asyncio.create_task(self._make(ingredients, kept))
            made.add_done_callback(lambda _: self._making.pop(digest, None))
        return await asyncio.shield(self._making[digest])

    async def _make(self, ingredients: _Ingredients, kept: Path) -> str:
        esbuild = find_esbuild(self._store)
        modules = await asyncio.to_thread(self._lay_out, ingredients)
        try:
            mount = None if self._folder is None else self._folder.mount
            script = await bundle(esbuild, modules / "node_modules", _entry(ingredients.imports, mount), self._minimum)
        finally:
            await asyncio.to_thread(shutil.rmtree, modules, ignore_errors=True)
        await asyncio.to_thread(_keep, kept, script)
        return script

    def _lay_out(self, ingredients: _Ingredients) -> Path:
        """Return a folder with the packages and the project's modules as the bundler looks them up."""
        self._store.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".bundle-", dir=self._store.folder))
        made.chmod(0o755)
        (made / "node_modules").mkdir(mode=0o755)
        lay_out(made, ingredients.placed, {each: self._store.tree(each) for each in ingredients.placed.values()})
        for path, content in ingredients.files.items():
            place = made / "node_modules" / PROJECT / path
            place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod(0o444)
        return made

    async def close(self) -> None:
        """Give up what is being made."""
        for task in list(self._making.values()):
            task.cancel()
        await asyncio.gather(*self._making.values(), return_exceptions=True)


def _newest(names: Iterable[str], approved: Iterable[PackageId]) -> list[PackageId]:
    """Return the newest approved version of each package that has one."""
    any_version = parse_range("*")
    found: list[PackageId] = []
    for name in sorted(names):
        versions = [each.version for each in approved if each.name == name]
        if versions:
            newest_one = newest(versions, any_version) if any_version is not None else None
            found.append(PackageId("npm", name, newest_one or max(versions)))
    return found


def _package_of(name: str) -> str:
    return "/".join(name.split("/")[: 2 if name.startswith("@") else 1])


def _entry(imports: tuple[ModuleImport, ...], mount: str | None) -> str:
    """Return the module that the bundler starts from: it exports what the guest looks up (`modules.js`)."""
    lines: list[str] = []
    for number, found in enumerate(imports):
        place = f"{PROJECT}{found.name.removeprefix(mount)}" if found.kind == "file" and mount else found.name
        specifier, name = json.dumps(place), f"m{number}"
        if found.form == "import":
            lines.append(f"import * as {name} from {specifier};")
        else:
            call = "import" if found.form == "dynamic" else "require"
            lines.append(f"const {name} = () => {call}({specifier});")
        lines.append(f"export {{ {name} as {json.dumps(f'{found.form} {found.name}')} }};")
    return "\n".join(lines)


def _keep(place: Path, script: str) -> None:
    place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=place.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(script)
    os.replace(made, place)
