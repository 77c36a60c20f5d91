"""esbuild, which bundles packages of npm for programs: one version, whose archive has the hash that is written here."""

from __future__ import annotations

import io
import os
import platform
import tarfile
import tempfile
from pathlib import Path

from gloveport.errors import PackageError
from gloveport.packages.registries import RegistryClient, npm_registry
from gloveport.packages.store import PackageStore

VERSION = "0.28.2"
# By machine: the package, and the hash of its archive.
_BUILDS = {
    "x86_64": (
        "linux-x64",
        "sha512-4xTZr1FUmSoQW4XIWmit3tzQrUTZM+N3P0XV8xROKYF50XfI7xeO90+1bZvNwxIufQ9hDQVRJH5YhgPVF8A/HQ==",
    ),
    "aarch64": (
        "linux-arm64",
        "sha512-pW4AC0P3it8c7do9MVM4p51FzHzdM/TZrerurgRcHJ2WTa1VQ1CIq18xncfpBJw4ojkiZZrKW2yIBWBP92j6Ug==",
    ),
}
_MEMBER = "package/bin/esbuild"


def esbuild_path(store: PackageStore) -> Path:
    """Return where esbuild is kept, whether it is there or not."""
    return store.folder / "tools" / f"esbuild-{VERSION}"


def find_esbuild(store: PackageStore) -> Path:
    """Return the path of esbuild; raise PackageError if it was not fetched."""
    path = esbuild_path(store)
    if not path.is_file():
        raise PackageError(
            "the bundler for JavaScript packages is not there",
            hint="`gloveport packages add` fetches it with any package of npm",
        )
    return path


async def ensure_esbuild(store: PackageStore, client: RegistryClient) -> Path:
    """Return the path of esbuild; fetch it from the user's registry if it is not there."""
    path = esbuild_path(store)
    if path.is_file():
        return path
    build, integrity = _BUILDS.get(platform.machine(), ("", ""))
    if not build:
        raise PackageError(f"there is no bundler for {platform.machine()}")
    name = f"@esbuild/{build}"
    registry = npm_registry(name)
    archive = await client.archive(f"{registry.url}{name}/-/{build}-{VERSION}.tgz", registry, integrity)
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:  # its hash is ours: it is no hostile archive
        found = opened.extractfile(_MEMBER)
        assert found is not None
        content = found.read()
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as out:
        out.write(content)
        os.fchmod(out.fileno(), 0o555)
    os.replace(made, path)
    return path
