"""The small engine for JavaScript: QuickJS, in a process that is forked inside the jail from a Python that has it loaded.

    host ── Leg ──► fork of the zygote: gloveport_guest (frames, the engine's doors) ── _quickjs ── prelude ── the program

A run costs a quarter of one in a fresh Deno, and a waiting process holds 2 MB; what the language lacks is said in
`gloveport.prepare.typescript.quickjs`. TypeScript is erased before it gets here.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from dataclasses import dataclass

from gloveport.errors import SandboxError
from gloveport.sandbox.engines.cpython import GUEST_FOLDER, PACKAGE, guest_files, zygote_launch
from gloveport.sandbox.engines.javascript.bundle import prelude
from gloveport.sandbox.launcher import Folder, Launch

DISTRIBUTION = "quickjs-ng"
KNOWN = "0.17."
BINDING = "_quickjs"
BINDING_FOLDER = "/quickjs"
ORIGIN = "GLOVEPORT_QUICKJS"
INSTALL = "pip install 'gloveport[quickjs]'"


@dataclass(frozen=True, slots=True)
class QuickJSOptions:
    """What is fixed when a zygote starts, so that it is part of the pool's key."""

    allow_eval: bool = False


def quickjs_launch(options: QuickJSOptions) -> Launch:
    """How to start a zygote whose guests have QuickJS and the prelude in them."""
    folder, name = os.path.split(find_quickjs())
    package = f"{GUEST_FOLDER}/{PACKAGE}"
    allow = "true" if options.allow_eval else "false"
    files = {
        **guest_files("quickjs"),
        f"{package}/options.js": f"globalThis.$$allowEval = {allow};\n".encode(),
        f"{package}/prelude.js": f"(() => {{\n{prelude('quickjs')}\n}})();\n".encode(),
    }
    binding = {BINDING_FOLDER: Folder(folder, (name,))}
    return zygote_launch(files, binding, {ORIGIN: f"{BINDING_FOLDER}/{name}"})


def quickjs_version() -> str:
    """The version of quickjs-ng that is installed; SandboxError when there is none, or one that is not known."""
    try:
        version = importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        raise SandboxError("the engine `quickjs` is not installed", hint=INSTALL) from None
    if not version.startswith(KNOWN):
        raise SandboxError(f"the engine `quickjs` is of version {version}, and {KNOWN}x is required", hint=INSTALL)
    return version


def find_quickjs() -> str:
    """The path of quickjs-ng's binding; SandboxError when another package's lies in its place."""
    quickjs_version()
    spec = importlib.util.find_spec(BINDING)
    if spec is None or not spec.origin or not os.path.isfile(spec.origin):
        raise SandboxError("the engine `quickjs` has no binding", hint=f"pip install --force-reinstall {DISTRIBUTION}")
    origin = os.path.realpath(spec.origin)
    files = importlib.metadata.files(DISTRIBUTION) or ()
    own = next((file for file in files if os.path.basename(file) == os.path.basename(origin)), None)
    if own is None or own.size is None or own.size != os.path.getsize(origin):
        # PyPI's `quickjs` installs a file of the same name.
        hint = f"pip uninstall quickjs, then pip install --force-reinstall {DISTRIBUTION}"
        raise SandboxError(f"{BINDING} is not the one of {DISTRIBUTION}", hint=hint)
    return origin
