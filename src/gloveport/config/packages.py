"""The settings of packages: `[packages]`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gloveport.config.layers import place_prefix
from gloveport.errors import OptionError

PACKAGE_KEYS = ("allow", "modules", "mount")
MOUNT_KEYS = ("modules", "workspace")
DEFAULT_MODULES_MOUNT = "/root/skills"
DEFAULT_WORKSPACE_MOUNT = "/workspace"
WORKSPACE_MOUNT = re.compile(r"(?=.{2,200}$)/(?:workspace|root|home|mnt|srv|data|app)(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
"""Where a workspace can be in a guest: where the guest's root has nothing else."""
_PREFIXES = ("npm:", "pypi:")


@dataclass(frozen=True, slots=True)
class PackagesConfig:
    """What programs may import. `allow` are names of approved packages (`pypi:numpy`); None for all of them.

    `modules` is the folder with the project's own modules, which programs find at `modules_mount`. The relative imports of
    a program start from `workspace_mount`, where the files of a session are.
    """

    allow: frozenset[str] | None = None
    modules: Path | None = None
    modules_mount: str = DEFAULT_MODULES_MOUNT
    workspace_mount: str = DEFAULT_WORKSPACE_MOUNT


def packages_from(values: Mapping[str, Any], origins: Mapping[str, str], folders: Mapping[str, Path]) -> PackagesConfig:
    """Return the settings; `folders` are those of the files that state a key. Raise OptionError with the place."""

    def fail(key: str, problem: str, hint: str) -> OptionError:
        return OptionError(f"{place_prefix(origins, f'packages.{key}')}{problem}", hint=hint)

    modules, mount = values.get("modules"), values.get("mount", {})
    if modules is not None and (not isinstance(modules, str) or not modules):
        raise fail(
            "modules", f"modules of [packages] must be a folder, not {modules!r:.60}", 'for example modules = "./skills"'
        )
    example = 'for example mount = { modules = "/root/skills", workspace = "/root/workspace" }'
    if not isinstance(mount, Mapping) or any(key not in MOUNT_KEYS for key in mount):
        raise fail(
            "mount", f"mount of [packages] must be a table of {' and '.join(MOUNT_KEYS)}, not {mount!r:.60}", example
        )
    for path in mount.values():
        plain = isinstance(path, str) and path.startswith("/") and posixpath.normpath(path) == path and path != "/"
        if not plain or not str(path).isprintable():
            raise fail("mount", f"mount of [packages] must have absolute paths, not {path!r:.60}", example)
    if not WORKSPACE_MOUNT.fullmatch(workspace := mount.get("workspace", DEFAULT_WORKSPACE_MOUNT)):
        hint = "it is /workspace, or below /root, /home, /mnt, /srv, /data or /app, of plain names"
        raise fail("mount", f"mount of [packages]: the workspace can't be at {workspace!r:.60}", hint)
    folder = None if modules is None else Path(folders.get("modules", Path()), Path(modules).expanduser())
    allow = package_names(values.get("allow"), f"{place_prefix(origins, 'packages.allow')}allow of [packages]")
    return PackagesConfig(allow, folder, mount.get("modules", DEFAULT_MODULES_MOUNT), workspace)


def package_names(value: Any, of: str) -> frozenset[str] | None:
    """Return the names of packages that a setting lists; raise OptionError for anything else."""
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(name, str) and name.startswith(_PREFIXES) for name in value):
        raise OptionError(f'{of} must be a list of packages such as "pypi:numpy", not {value!r:.60}')
    return frozenset(value)
