"""Where guests live: a root of their own where namespaces can be had, else on the host with Landlock around them.

Quarters are taken once, by the fork server, while it may still walk to the engine; its guests get descriptors.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from gloveport.sandbox import elf, landlock, namespaces, root

_RANDOM = "/dev/urandom"  # V8 seeds the randomisation of its addresses from it, and from the clock without it
_LOADER_CACHE = "/etc/ld.so.cache"
_PREFIX = "gloveport-"


@dataclass(frozen=True, slots=True)
class Spec:
    """What a fork server starts again and again; the paths in `files` are the guest's."""

    executable: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Quarters:
    """A place for guests, seen from where they will be: descriptors to exec and to allow, arguments and environment."""

    engine: int
    rules: tuple[tuple[int, int], ...]
    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: str | None = None  # on the host, to be removed at the end

    def close(self) -> None:
        """Remove what lies on the host."""
        if self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)


def plan(spec: Spec) -> root.Tree:
    """The root that a guest of this spec needs."""
    astray = [path for path in spec.files if not path.startswith("/") or path != os.path.normpath(path)]
    if astray:
        raise ValueError(f"a file's path must be absolute and plain, not {astray[0]!r}")
    needs = elf.needs(spec.executable)
    engine = f"/engine/{os.path.basename(spec.executable)}"
    binds = {engine: os.path.realpath(spec.executable), **dict(needs.libraries)}
    if needs.interpreter:
        binds[needs.interpreter] = needs.interpreter
    devices = {_RANDOM: _RANDOM} if os.path.exists(_RANDOM) else {}
    return root.Tree(engine, needs.interpreter, binds, devices, spec.files)


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
    return Quarters(_open(tree.engine), _rules(tree, hosts), spec.argv, spec.env)


def on_host(spec: Spec, tree: root.Tree) -> Quarters:
    """The quarters without namespaces: engine and libraries where they are, the files in a directory in memory."""
    _sweep()
    directory = _own_directory()
    places: dict[str, str] = {}
    for path, content in spec.files.items():
        places[path] = directory + path
        os.makedirs(os.path.dirname(places[path]), mode=0o755, exist_ok=True)
        with open(places[path], "xb", opener=lambda name, flags: os.open(name, flags, 0o444)) as file:
            file.write(content)
    hosts = {**tree.binds, **tree.devices, **places}
    rules = _rules(tree, hosts)
    if any(guest != host for guest, host in tree.binds.items() if guest != tree.engine):
        rules = (*rules, (_open(_LOADER_CACHE), landlock.READ))

    def moved(text: str) -> str:
        inside = next((path for path in places if text == path or text.startswith(path + "/")), None)
        return text if inside is None else directory + text

    env = {name: moved(value) for name, value in spec.env.items()}
    return Quarters(_open(hosts[tree.engine]), rules, tuple(map(moved, spec.argv)), env, directory)


def _rules(tree: root.Tree, hosts: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    run = {tree.engine, tree.interpreter}
    return tuple((_open(host), landlock.RUN if path in run else landlock.READ) for path, host in hosts.items())


def _open(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _own_directory() -> str:
    """A new directory that bears its name only once this process holds its lock; `_sweep` leaves it alone until then."""
    made = tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=_in_memory())
    lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.chmod(made, 0o755)
    directory = os.path.join(os.path.dirname(made), os.path.basename(made)[1:])
    os.rename(made, directory)
    return directory


def _in_memory() -> str:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else tempfile.gettempdir()


def _sweep() -> None:
    """Remove the directories of fork servers that were killed: nobody holds their lock any more."""
    for path in glob.glob(f"{_in_memory()}/{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another's, or locked, or gone
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(fd).st_uid == os.geteuid():
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(fd)
