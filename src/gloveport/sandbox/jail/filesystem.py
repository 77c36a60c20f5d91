"""Where guests live: a root of their own where namespaces can be had, else on the host with Landlock around them.

Quarters are taken once, by the fork server, while it may still walk to the engine; its guests get descriptors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gloveport.sandbox.jail import elf, landlock, namespaces, root

_RANDOM = "/dev/urandom"  # V8 seeds the randomisation of its addresses from it, and from the clock without it
_LOADER_CACHE = "/etc/ld.so.cache"


@dataclass(frozen=True, slots=True)
class Folder:
    """A directory of the host that guests may read: all of it, or only the entries named."""

    path: str
    entries: tuple[str, ...] | None = None

    def binds(self, place: str) -> dict[str, str]:
        """What of it is bound where, when it is to be found at `place`: guest path → host path."""
        if self.entries is None:
            return {place: self.path}
        return {f"{place}/{name}": f"{self.path}/{name}" for name in self.entries}


@dataclass(frozen=True, slots=True)
class Spec:
    """What a fork server starts again and again; the paths in `files` and `folders` are the guest's.

    With `zygote`, it is started once and forks the guests.
    """

    executable: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, bytes]
    folders: Mapping[str, Folder] = field(default_factory=dict)
    zygote: bool = False


@dataclass(frozen=True, slots=True)
class Quarters:
    """A place for guests, seen from where they will be: a program to exec, by path and by descriptor, descriptors to
    allow, arguments and environment."""

    program: str
    engine: int
    rules: tuple[tuple[int, int], ...]
    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: str | None = None  # on the host, to be removed at the end

    def close(self) -> None:
        """Remove what lies on the host."""
        if self.directory is not None:
            from gloveport.sandbox.jail import scratch

            scratch.remove(self.directory)


def plan(spec: Spec) -> root.Tree:
    """The root that a guest of this spec needs."""
    paths = (*spec.files, *spec.folders)
    astray = [path for path in paths if not path.startswith("/") or path != os.path.normpath(path)]
    if astray:
        raise ValueError(f"a file's path must be absolute and plain, not {astray[0]!r}")
    folders = {place: folder.binds(place) for place, folder in spec.folders.items()}
    needs = elf.needs(spec.executable, [host for host in _bound(folders) if host.endswith(".so")])
    # A Python finds its library from where it lies itself.
    engine = f"{'/usr/bin' if spec.zygote else '/engine'}/{os.path.basename(spec.executable)}"
    binds = {engine: os.path.realpath(spec.executable), **dict(needs.libraries)}
    if needs.interpreter:
        binds[needs.interpreter] = needs.interpreter
    devices = {_RANDOM: _RANDOM} if os.path.exists(_RANDOM) else {}
    return root.Tree(engine, needs.interpreter, binds, devices, spec.files, folders, needs.from_cache)


def leave_host(tree: root.Tree, proc: int) -> None:
    """Take this process out of the host's file system and out of its user, for good."""
    if os.geteuid() == 0:
        os.setgroups([])
    try:
        root.own_mounts()
    except PermissionError:
        namespaces.enter_user_namespace(proc)
        root.own_mounts()
        sources = root.open_sources(tree)
        namespaces.become_nobody()
        root.change_root(tree, sources)
        return
    # With the privilege at hand everything is done as root, who may walk to an engine in anybody's home.
    root.change_root(tree, root.open_sources(tree))
    namespaces.enter_user_namespace(proc)
    namespaces.become_nobody()


def own_root(spec: Spec, tree: root.Tree) -> Quarters:
    """The quarters after `leave_host`: every path is the guest's path."""
    hosts = {path: path for path in (*tree.binds, *tree.devices, *tree.files)}
    folders = [*tree.folders, *(_folders_of(tree.files) if spec.zygote else ())]
    rules = (*_rules(spec, tree, hosts), *((_open(path), landlock.LIST) for path in folders))
    return Quarters(tree.engine, _open(tree.engine), rules, spec.argv, spec.env)


def on_host(spec: Spec, tree: root.Tree) -> Quarters:
    """The quarters without namespaces: engine and libraries where they are, the files in a directory in memory."""
    from gloveport.sandbox.jail import scratch

    scratch.sweep()
    directory = scratch.make()
    places: dict[str, str] = {}
    for path, content in spec.files.items():
        places[path] = directory + path
        os.makedirs(os.path.dirname(places[path]), mode=0o755, exist_ok=True)
        with open(places[path], "xb", opener=lambda name, flags: os.open(name, flags, 0o444)) as file:
            file.write(content)
    hosts = {**tree.binds, **tree.devices, **places}
    rules = list(_rules(spec, tree, hosts))
    if tree.loader_cache:
        rules.append((_open(_LOADER_CACHE), landlock.READ))
    # The entries one by one: what else lies in the same folder of the host is not for guests, nor are its names.
    shared = [*_bound(tree.folders), *(map(directory.__add__, _folders_of(places)) if spec.zygote else ())]
    rules += [(_open(path), landlock.LIST if os.path.isdir(path) else landlock.READ) for path in shared]

    bound = {guest: host for folder in tree.folders.values() for guest, host in folder.items()}

    def moved(text: str) -> str:
        if text in bound:
            return bound[text]
        inside = any(text == path or text.startswith(f"{path}/") or path.startswith(f"{text}/") for path in places)
        return directory + text if inside else text

    env = {name: moved(value) for name, value in spec.env.items()}
    program = hosts[tree.engine]
    return Quarters(program, _open(program), tuple(rules), tuple(map(moved, spec.argv)), env, directory)


def _bound(folders: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [host for bound in folders.values() for host in bound.values()]


def _folders_of(files: Iterable[str]) -> list[str]:
    return sorted({os.path.dirname(path) for path in files})


def _rules(spec: Spec, tree: root.Tree, hosts: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    run = set() if spec.zygote else {tree.engine, tree.interpreter}
    return tuple((_open(host), landlock.RUN if path in run else landlock.READ) for path, host in hosts.items())


def _open(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)
