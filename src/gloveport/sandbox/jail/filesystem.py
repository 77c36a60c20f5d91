"""The files that guests can see.

With namespaces, guests have their own root: a read-only tree in memory that holds the engine, its libraries and files,
and nothing else. Without namespaces they see the host's root, and Landlock lets them open only those same files.

The fork server prepares a `GuestFilesystem` once, while it can still reach the engine; guests work from descriptors.
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
from gloveport.sandbox.jail.workspace import WorkspaceQuota

_RANDOM = "/dev/urandom"  # V8 seeds its address randomisation from it; without it, from the clock
_LOADER_CACHE = "/etc/ld.so.cache"

_SCRATCH_PREFIX = "gloveport-"
_MAX_ROOT_BYTES = 16 * 1024 * 1024

_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_NOEXEC = 1, 2, 4, 8
_AT_FDCWD = -100


@dataclass(frozen=True, slots=True)
class Folder:
    """A directory of the host that guests may read: all of it, or only the named entries."""

    path: str
    entries: tuple[str, ...] | None = None

    def binds(self, place: str) -> dict[str, str]:
        """Return the bind mounts (guest path → host path) that make this folder appear at `place`."""
        if self.entries is None:
            return {place: self.path}
        return {f"{place}/{name}": f"{self.path}/{name}" for name in self.entries}


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """What a fork server starts for each guest. The paths in `files` and `folders` are guest paths.

    With `zygote`, the fork server starts it once, and it forks the guests. With `own_code`, they run only code of ours,
    which the zygote has loaded before. With `joins_threads`, its main thread waits for another to
    end. With `is_go`, the executable is a program of Go. With `workspace`, each guest has a writable folder of its own.
    """

    executable: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, bytes]
    folders: Mapping[str, Folder] = field(default_factory=dict)
    zygote: bool = False
    own_code: bool = False
    joins_threads: bool = False
    is_go: bool = False
    workspace: WorkspaceQuota | None = None


@dataclass(frozen=True, slots=True)
class RootLayout:
    """What the guests' root holds: `binds` and `devices` map guest paths to host paths, `files` guest paths to content.

    `folders` maps the guest path of each directory to the binds in it (guest path → host path).
    """

    engine: str
    interpreter: str | None
    binds: Mapping[str, str]
    devices: Mapping[str, str]
    files: Mapping[str, bytes]
    folders: Mapping[str, Mapping[str, str]]
    workspace: str | None = None  # the path
    loader_cache: bool = False  # the host's loader finds some of `binds` only through its cache


@dataclass(frozen=True, slots=True)
class GuestFilesystem:
    """The file system of guests, with paths as the guests see them.

    `program` is the path of the engine and `engine` its descriptor; `rules` are Landlock rules (descriptor, access).
    """

    program: str
    engine: int
    rules: tuple[tuple[int, int], ...]
    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: str | None = None  # scratch directory on the host, removed by `close`

    def close(self) -> None:
        """Remove the scratch directory from the host."""
        if self.directory is not None:
            remove_scratch(self.directory)


def plan_root(spec: LaunchSpec) -> RootLayout:
    """Return the layout of the root that guests of this spec need."""
    paths = (*spec.files, *spec.folders)
    invalid = [path for path in paths if not path.startswith("/") or path != os.path.normpath(path)]
    if invalid:
        raise ValueError(f"a file's path must be absolute and normalised, not {invalid[0]!r}")
    folders = {place: folder.binds(place) for place, folder in spec.folders.items()}
    needs = elf.find_dependencies(spec.executable, [host for host in _host_paths(folders) if host.endswith(".so")])
    # Python finds its library relative to its own path.
    engine = f"{'/usr/bin' if spec.zygote else '/engine'}/{os.path.basename(spec.executable)}"
    binds = {engine: os.path.realpath(spec.executable), **dict(needs.libraries)}
    if needs.interpreter:
        binds[needs.interpreter] = needs.interpreter
    devices = {_RANDOM: _RANDOM} if os.path.exists(_RANDOM) else {}
    workspace = None if spec.workspace is None else spec.workspace.path
    return RootLayout(engine, needs.interpreter, binds, devices, spec.files, folders, workspace, needs.from_cache)


def leave_host(layout: RootLayout, proc: int) -> None:
    """Move this process into the guests' root and into an unprivileged user namespace, irrevocably."""
    if os.geteuid() == 0:
        os.setgroups([])
    try:
        unshare_mounts()
    except PermissionError:
        namespaces.enter_user_namespace(proc)
        unshare_mounts()
        sources = open_sources(layout)
        namespaces.become_nobody()
        change_root(layout, sources)
        return
    # While this process is root, it opens everything as root, who can reach an engine in any user's home.
    change_root(layout, open_sources(layout))
    namespaces.enter_user_namespace(proc)
    namespaces.become_nobody()


def own_root_filesystem(spec: LaunchSpec, layout: RootLayout) -> GuestFilesystem:
    """Return the file system after `leave_host`: every path is a guest path."""
    hosts = {path: path for path in (*layout.binds, *layout.devices, *layout.files)}
    folders = [*layout.folders, *(_parent_folders(layout.files) if spec.zygote else ())]
    rules = (*_landlock_rules(spec, layout, hosts), *((_open(path), landlock.LIST) for path in folders))
    return GuestFilesystem(layout.engine, _open(layout.engine), rules, spec.argv, spec.env)


def host_filesystem(spec: LaunchSpec, layout: RootLayout) -> GuestFilesystem:
    """Return the file system without namespaces: the engine and libraries in place, `files` in a scratch directory."""
    remove_stale_scratch()
    directory = make_scratch()
    places: dict[str, str] = {}
    for path, content in spec.files.items():
        places[path] = directory + path
        os.makedirs(os.path.dirname(places[path]), mode=0o755, exist_ok=True)
        with open(places[path], "xb", opener=lambda name, flags: os.open(name, flags, 0o444)) as file:
            file.write(content)
    hosts = {**layout.binds, **layout.devices, **places}
    rules = list(_landlock_rules(spec, layout, hosts))
    if layout.loader_cache:
        rules.append((_open(_LOADER_CACHE), landlock.READ))
    # One rule for each entry: guests may not read anything else in the same host folder, nor the names in it.
    shared = [*_host_paths(layout.folders), *(map(directory.__add__, _parent_folders(places)) if spec.zygote else ())]
    rules += [(_open(path), landlock.LIST if os.path.isdir(path) else landlock.READ) for path in shared]

    bound = {guest: host for folder in layout.folders.values() for guest, host in folder.items()}

    def moved(text: str) -> str:
        if text in bound:
            return bound[text]
        inside = any(text == path or text.startswith(f"{path}/") or path.startswith(f"{text}/") for path in places)
        return directory + text if inside else text

    env = {name: moved(value) for name, value in spec.env.items()}
    program = hosts[layout.engine]
    return GuestFilesystem(program, _open(program), tuple(rules), tuple(map(moved, spec.argv)), env, directory)


def _host_paths(folders: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [host for bound in folders.values() for host in bound.values()]


def _parent_folders(files: Iterable[str]) -> list[str]:
    return sorted({os.path.dirname(path) for path in files})


def _landlock_rules(spec: LaunchSpec, layout: RootLayout, hosts: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    run = set() if spec.zygote else {layout.engine, layout.interpreter}
    return tuple((_open(host), landlock.RUN if path in run else landlock.READ) for path, host in hosts.items())


def _open(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


# ── mounts ──


def unshare_mounts() -> None:
    """Give this process a private mount namespace."""
    call("unshare", NEWNS)
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)


def open_sources(layout: RootLayout) -> dict[str, int]:
    """Open what the layout binds, while this process can still reach it; return the descriptors by guest path."""
    sources = {**layout.binds, **layout.devices}
    for bound in layout.folders.values():
        sources.update(bound)
    return {guest: os.open(host, os.O_PATH | os.O_CLOEXEC) for guest, host in sources.items()}


def change_root(layout: RootLayout, sources: Mapping[str, int]) -> None:
    """Build the layout in a tmpfs, make it the root of this process, and unmount the old root."""
    new_root = next(place for place in ("/tmp", "/mnt", "/run", "/dev") if os.path.isdir(place))
    _mount("guest", new_root, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=0755,size={_MAX_ROOT_BYTES}")
    os.chdir(new_root)
    for path, content in layout.files.items():
        _write_file(path, content)
    if layout.workspace is not None:
        os.makedirs(f".{layout.workspace}", 0o755)
    for path, fd in sources.items():
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.makedirs(f".{path}", mode=0o755, exist_ok=True)
        else:
            _write_file(path, b"")
        _mount(f"/proc/self/fd/{fd}", f".{path}", None, _MS_BIND)
        os.close(fd)
        _set_attributes(f".{path}", _ATTR_RDONLY | _ATTR_NOSUID | (_ATTR_NOEXEC if path in layout.devices else _ATTR_NODEV))
    _set_attributes(".", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV | _ATTR_NOEXEC)
    os.chdir(new_root)
    call("pivot_root", ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
    call("umount2", ctypes.c_char_p(b"."), _MNT_DETACH)
    os.chdir("/")


def _write_file(path: str, content: bytes) -> None:
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
#
# Only a fork server without namespaces needs them. The imports stand inside the functions because they would double the
# memory mappings that each guest gets a copy of.


def make_scratch() -> str:
    """Create a directory and return its path. It gets its final name only once this process holds its lock.

    Until then `remove_stale_scratch` of another fork server does not see it.
    """
    import tempfile

    made = tempfile.mkdtemp(prefix=f".{_SCRATCH_PREFIX}", dir=_memory_folder())
    lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.chmod(made, 0o755)
    directory = os.path.join(os.path.dirname(made), os.path.basename(made)[1:])
    os.rename(made, directory)
    return directory


def remove_scratch(directory: str) -> None:
    """Remove a scratch directory and its contents."""
    import shutil

    shutil.rmtree(directory, ignore_errors=True)


def remove_stale_scratch() -> None:
    """Remove the directories of fork servers that were killed: no process holds their lock any more."""
    import glob

    for path in glob.glob(f"{_memory_folder()}/{_SCRATCH_PREFIX}*"):
        with contextlib.suppress(OSError):  # owned by another user, locked, or gone
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(fd).st_uid == os.geteuid():
                    remove_scratch(path)
            finally:
                os.close(fd)


def _memory_folder() -> str:
    if os.access("/dev/shm", os.W_OK | os.X_OK):
        return "/dev/shm"
    import tempfile

    return tempfile.gettempdir()
