"""Where guests live: a root of their own where namespaces can be had, else on the host with Landlock around them.

GuestFilesystem are taken once, by the fork server, while it may still walk to the engine; its guests get descriptors.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import stat
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gloveport.sandbox.jail import elf, landlock, namespaces
from gloveport.sandbox.jail.namespaces import NEWNS
from gloveport.sandbox.jail.syscalls import call

_RANDOM = "/dev/urandom"  # V8 seeds the randomisation of its addresses from it, and from the clock without it
_LOADER_CACHE = "/etc/ld.so.cache"

_PREFIX = "gloveport-"

_BYTES = 16 * 1024 * 1024

_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_NOEXEC = 1, 2, 4, 8
_AT_FDCWD = -100


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
class LaunchSpec:
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
class RootLayout:
    """What the root holds: `binds` and `devices` map guest paths to host paths, `files` guest paths to content.

    `folders` maps guest paths of directories to what is bound in each, in the same manner.
    """

    engine: str
    interpreter: str | None
    binds: Mapping[str, str]
    devices: Mapping[str, str]
    files: Mapping[str, bytes]
    folders: Mapping[str, Mapping[str, str]]
    loader_cache: bool = False  # on the host, the loader finds some of `binds` only through its cache


@dataclass(frozen=True, slots=True)
class GuestFilesystem:
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
            remove_scratch(self.directory)


def plan_root(spec: LaunchSpec) -> RootLayout:
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
    return RootLayout(engine, needs.interpreter, binds, devices, spec.files, folders, needs.from_cache)


def leave_host(tree: RootLayout, proc: int) -> None:
    """Take this process out of the host's file system and out of its user, for good."""
    if os.geteuid() == 0:
        os.setgroups([])
    try:
        own_mounts()
    except PermissionError:
        namespaces.enter_user_namespace(proc)
        own_mounts()
        sources = open_sources(tree)
        namespaces.become_nobody()
        change_root(tree, sources)
        return
    # With the privilege at hand everything is done as root, who may walk to an engine in anybody's home.
    change_root(tree, open_sources(tree))
    namespaces.enter_user_namespace(proc)
    namespaces.become_nobody()


def own_root(spec: LaunchSpec, tree: RootLayout) -> GuestFilesystem:
    """The quarters after `leave_host`: every path is the guest's path."""
    hosts = {path: path for path in (*tree.binds, *tree.devices, *tree.files)}
    folders = [*tree.folders, *(_folders_of(tree.files) if spec.zygote else ())]
    rules = (*_rules(spec, tree, hosts), *((_open(path), landlock.LIST) for path in folders))
    return GuestFilesystem(tree.engine, _open(tree.engine), rules, spec.argv, spec.env)


def on_host(spec: LaunchSpec, tree: RootLayout) -> GuestFilesystem:
    """The quarters without namespaces: engine and libraries where they are, the files in a directory in memory."""
    remove_stale_scratch()
    directory = make_scratch()
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
    return GuestFilesystem(program, _open(program), tuple(rules), tuple(map(moved, spec.argv)), env, directory)


def _bound(folders: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [host for bound in folders.values() for host in bound.values()]


def _folders_of(files: Iterable[str]) -> list[str]:
    return sorted({os.path.dirname(path) for path in files})


def _rules(spec: LaunchSpec, tree: RootLayout, hosts: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    run = set() if spec.zygote else {tree.engine, tree.interpreter}
    return tuple((_open(host), landlock.RUN if path in run else landlock.READ) for path, host in hosts.items())


def _open(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


# ── mounts ──


def own_mounts() -> None:
    """Give this process a mount namespace whose changes stay in it."""
    call("unshare", NEWNS)
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)


def open_sources(tree: RootLayout) -> dict[str, int]:
    """Descriptors of what the tree binds, by guest path: taken while this process may still walk to it."""
    sources = {**tree.binds, **tree.devices}
    for bound in tree.folders.values():
        sources.update(bound)
    return {guest: os.open(host, os.O_PATH | os.O_CLOEXEC) for guest, host in sources.items()}


def change_root(tree: RootLayout, sources: Mapping[str, int]) -> None:
    """Make the tree this process's root, and let go of the old one."""
    new_root = next(place for place in ("/tmp", "/mnt", "/run", "/dev") if os.path.isdir(place))
    _mount("guest", new_root, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=0755,size={_BYTES}")
    os.chdir(new_root)
    for path, content in tree.files.items():
        _lay(path, content)
    for path, fd in sources.items():
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.makedirs(f".{path}", mode=0o755, exist_ok=True)
        else:
            _lay(path, b"")
        _mount(f"/proc/self/fd/{fd}", f".{path}", None, _MS_BIND)
        os.close(fd)
        _set_attributes(f".{path}", _ATTR_RDONLY | _ATTR_NOSUID | (_ATTR_NOEXEC if path in tree.devices else _ATTR_NODEV))
    _set_attributes(".", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV | _ATTR_NOEXEC)
    os.chdir(new_root)
    call("pivot_root", ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
    call("umount2", ctypes.c_char_p(b"."), _MNT_DETACH)
    os.chdir("/")


def _lay(path: str, content: bytes) -> None:
    os.makedirs(f".{os.path.dirname(path)}", mode=0o755, exist_ok=True)
    fd = os.open(f".{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    with os.fdopen(fd, "wb") as file:
        file.write(content)


def _set_attributes(path: str, attributes: int) -> None:
    request = struct.pack("=QQQQ", attributes, 0, 0, 0)
    path_bytes = ctypes.c_char_p(path.encode())
    call("mount_setattr", _AT_FDCWD, path_bytes, 0, ctypes.c_char_p(request), len(request))


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else ctypes.c_char_p(text.encode()) for text in (source, target, kind, options)]
    try:
        call("mount", texts[0], texts[1], texts[2], flags, texts[3])
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({target})") from None


# ── scratch directories on the host ──


def make_scratch() -> str:
    """A new directory that bears its name only once this process holds its lock; `sweep` leaves it alone until then."""
    import tempfile

    made = tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=_in_memory())
    lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.chmod(made, 0o755)
    directory = os.path.join(os.path.dirname(made), os.path.basename(made)[1:])
    os.rename(made, directory)
    return directory


def remove_scratch(directory: str) -> None:
    """Remove a directory and all in it."""
    import shutil

    shutil.rmtree(directory, ignore_errors=True)


def remove_stale_scratch() -> None:
    """Remove the directories of fork servers that were killed: nobody holds their lock any more."""
    import glob

    for path in glob.glob(f"{_in_memory()}/{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another's, or locked, or gone
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(fd).st_uid == os.geteuid():
                    remove_scratch(path)
            finally:
                os.close(fd)


def _in_memory() -> str:
    if os.access("/dev/shm", os.W_OK | os.X_OK):
        return "/dev/shm"
    import tempfile

    return tempfile.gettempdir()
