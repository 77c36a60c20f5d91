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
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gloveport.errors import PackageError
from gloveport.packages.esbuild import VERSION, find_esbuild
from gloveport.packages.layout import lay_out, places
from gloveport.packages.module_folder import JAVASCRIPT, ModuleFolder
from gloveport.packages.package import Package, PackageId
from gloveport.packages.semver import newest, parse_range
from gloveport.packages.store import PackageStore
from gloveport.sandbox.start_event import RunModules
from gloveport.sandbox.tasks.bundler import BUNDLER, bundle
from gloveport.types import MIB, Importable, ModuleImport, Program, Strength

PROJECT = "gloveport-project"
"""The name under which the bundler finds the modules of the project. It begins like no package, and is never shown."""
_SPECIFIER = re.compile(r"\b(?:from|import|require)\s*\(?\s*[\"']([^\"'\s]{1,300})[\"']")
_REQUIRED = re.compile(r"\brequire\(\"(?:node:)?([a-z_]+(?:/[a-z_]+)?)\"\)")

# Scripts that are held in memory, and those that are kept. An agent has one made of each set of modules that it imports.
MAX_KNOWN, MAX_KNOWN_BYTES = 32, 64 * MIB
MAX_KEPT, MAX_KEPT_BYTES = 1000, 512 * MIB
_Wanted = tuple[tuple[ModuleImport, ...], frozenset[str], frozenset[str]]


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
    """The scripts for the JavaScript programs of a port. `folder` has the project's own modules.

    The relative imports of a program start from `workspace`.
    """

    def __init__(self, minimum: Strength, folder: ModuleFolder | None, workspace: str, store: PackageStore) -> None:
        self._minimum: Strength = minimum
        self._folder = folder
        self._workspace = workspace
        self._store = store
        self._making: dict[str, asyncio.Task[str]] = {}
        self._approved: Mapping[PackageId, Package] = {}  # for which `_known` holds
        self._known: dict[_Wanted, RunModules] = {}

    async def importable(self, builtins: frozenset[str], allowed: frozenset[str] | None) -> Importable:
        """Return what a program may import: an engine's modules, allowed packages (`npm:zod`), modules of the project."""
        if self._folder is None:
            return self._importable(builtins, allowed)
        return await asyncio.to_thread(self._importable, builtins, allowed)

    def _importable(self, builtins: frozenset[str], allowed: frozenset[str] | None) -> Importable:
        names = {each.name for each in self._store.approved() if each.ecosystem == "npm"}
        packages = frozenset(name for name in names if allowed is None or f"npm:{name}" in allowed)
        if self._folder is None:
            return Importable(builtins, packages, beside=self._workspace)
        mount = self._folder.mount
        files = frozenset(f"{mount}/{path}" for path in self._folder.files(JAVASCRIPT))
        return Importable(builtins, packages, files, mount, self._workspace)

    def importable_again(self, builtins: frozenset[str], imports: tuple[str, ...]) -> Importable:
        """Return what a program may import that has begun with these imports, whatever it may import now."""
        pairs = [each.partition(" ") for each in imports]
        packages = frozenset(_package_of(name) for kind, _, name in pairs if kind == "package")
        files = frozenset(name for kind, _, name in pairs if kind == "file")
        folder = "/root/skills" if self._folder is None else self._folder.mount
        return Importable(builtins, packages, files, folder, self._workspace)

    async def modules(self, program: Program) -> RunModules | None:
        """Return the modules for what a program imports; None if it imports nothing. Raise PackageError."""
        if not program.imports:
            return None
        builtins = {found.name for found in program.imports if found.kind == "builtin"}
        imports = tuple(f"{found.kind} {found.name}" for found in program.imports)
        others = tuple(found for found in program.imports if found.kind != "builtin")
        if not others:
            return RunModules(tuple(sorted(builtins)))
        importable = program.importable or Importable()
        wanted = program.imports, importable.packages, importable.builtins
        if (approved := self._store.approved()) is not self._approved:
            self._approved, self._known = approved, {}
        if (known := self._known.get(wanted)) is not None:
            return known
        ingredients = await asyncio.to_thread(self._ingredients, others, importable.packages)
        script = await self._script(ingredients)
        builtins |= importable.builtins & set(_REQUIRED.findall(script))
        modules = RunModules(tuple(sorted(builtins)), script, imports)
        if approved is self._approved and not any(found.kind == "file" for found in others):  # a file may change
            size = len(script) + sum(len(each.script or "") for each in self._known.values())
            if len(self._known) >= MAX_KNOWN or size > MAX_KNOWN_BYTES:
                self._known.clear()
            self._known[wanted] = modules
        return modules

    def _ingredients(self, imports: tuple[ModuleImport, ...], allowed: frozenset[str]) -> _Ingredients:
        approved = {each: package for each, package in self._store.approved().items() if each.ecosystem == "npm"}
        files: Mapping[str, bytes] = {}
        named = {_package_of(found.name) for found in imports if found.kind == "package"}
        if self._folder is not None and any(found.kind == "file" for found in imports):
            files = self._folder.read(JAVASCRIPT)
            texts = (content.decode(errors="replace") for content in files.values())
            named |= {_package_of(name.removeprefix("npm:")) for text in texts for name in _SPECIFIER.findall(text)}
        return _Ingredients(imports, places(_newest(named & allowed, approved), approved), approved, files)

    async def _script(self, ingredients: _Ingredients) -> str:
        digest = ingredients.digest()
        kept = self._store.folder / "bundles" / f"{digest}.js"
        try:
            return await asyncio.to_thread(_read, kept)
        except FileNotFoundError:
            pass
        if digest not in self._making:
            made = self._making[digest] = asyncio.create_task(self._make(ingredients, kept))
            made.add_done_callback(lambda _: self._making.pop(digest, None))
        return await asyncio.shield(self._making[digest])

    async def _make(self, ingredients: _Ingredients, kept: Path) -> str:
        esbuild = find_esbuild(self._store)
        try:
            modules = await asyncio.to_thread(self._lay_out, ingredients)
        except OSError as error:  # a full disk, or a store that this user may only read
            raise PackageError(f"the packages can't be put together: {error.strerror or error}") from None
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


def _read(place: Path) -> str:
    script = place.read_text(encoding="utf-8")
    with suppress(OSError):  # a store that this user may only read
        os.utime(place)
    return script


def _keep(place: Path, script: str) -> None:
    """Keep a script. Those that nobody has used for long make room; they are made again when they are needed."""
    place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=place.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(script)
    os.replace(made, place)
    with suppress(FileNotFoundError):  # another process makes room, too
        _make_room(place.parent)


def _make_room(folder: Path) -> None:
    kept = [(each.stat(), each) for each in folder.glob("*.js")]
    size = sum(about.st_size for about, _ in kept)
    for number, (about, each) in enumerate(sorted(kept, key=lambda one: one[0].st_mtime_ns)):
        if len(kept) - number <= MAX_KEPT and size <= MAX_KEPT_BYTES:
            break
        each.unlink(missing_ok=True)
        size -= about.st_size
