"""QuickJS: the small engine for JavaScript, in a process that is forked in the jail from a Python that has it loaded.

    host ── RunAttempt ──► fork of the zygote: gloveport_guest (frames, engine bindings) ── _quickjs ── prelude ── program

A run costs a quarter of one in a fresh Deno, and a waiting process holds 2 MB. `subset` lists what the language lacks.
`prepare` erases TypeScript's types before the program gets here.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from pathlib import Path

from gloveport.errors import OptionError, SandboxError
from gloveport.sandbox.engines.engine import Capability, ProcessOptions
from gloveport.sandbox.engines.javascript.bundle import OWN_MODULES, prelude
from gloveport.sandbox.engines.zygote_launch import GUEST_FOLDER, PACKAGE, guest_files, zygote_launch
from gloveport.sandbox.jail.filesystem import Folder
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.sandbox.worker import Worker
from gloveport.types import Language

DISTRIBUTION = "quickjs-ng"
SUPPORTED_VERSION = "0.17."
BINDING = "_quickjs"
BINDING_FOLDER = "/quickjs"
ORIGIN = "GLOVEPORT_QUICKJS"
INSTALL = "pip install 'gloveport[quickjs]'"


class QuickJSEngine:
    """QuickJS, from the `quickjs-ng` package, forked from a zygote."""

    name = "quickjs"
    languages: tuple[Language, ...] = ("typescript", "javascript")
    distribution = DISTRIBUTION
    substitute = None
    builtin_modules: tuple[str, ...] = OWN_MODULES
    subset = "gloveport.sandbox.engines.quickjs.subset"
    capabilities = (
        Capability(
            "typescript", "yes", "types are erased; enums, namespaces, decorators and parameter properties are refused"
        ),
        Capability("await", "yes", "top-level await and return; parallel calls with Promise.all"),
        Capability("eval", "off", "eval and new Function: Gloveport(allow_eval=True) or --allow-eval"),
        Capability(
            "platform",
            "no",
            "no Intl, URL, Temporal, Blob, streams or crypto.subtle; what is missing is named before the run",
        ),
        Capability("wasm", "no", "there is no WebAssembly, and no compiler to machine code"),
        Capability("network", "off", "fetch, by rules; the host makes the requests"),
        Capability("files", "no", "there is no file system; tools read and write on the host"),
        Capability("packages", "off", "approved npm packages that need little of the platform"),
    )

    def version(self) -> str:
        """Return the installed version. Raise SandboxError when there is none, or one that is not supported."""
        find_quickjs()
        return quickjs_version()

    def process_options(self, wanted: ProcessOptions) -> ProcessOptions:
        """Return the options that a zygote fixes. Raise OptionError for WebAssembly."""
        if wanted.allow_wasm:
            raise OptionError("the engine quickjs has no WebAssembly", hint="leave allow_wasm out, or use the engine deno")
        return ProcessOptions(wanted.engine, wanted.allow_eval, memory_mb=0)

    def launch(self, options: ProcessOptions) -> Launch:
        """Return how to start a zygote whose guests have QuickJS and the prelude loaded."""
        folder, name = os.path.split(find_quickjs())
        package = f"{GUEST_FOLDER}/{PACKAGE}"
        allow = "true" if options.allow_eval else "false"
        files = {
            **guest_files(Path(__file__).parent),
            f"{package}/options.js": f"globalThis.$$allowEval = {allow};\n".encode(),
            f"{package}/prelude.js": f"(() => {{\n{prelude('quickjs')}\n}})();\n".encode(),
        }
        binding = {BINDING_FOLDER: Folder(folder, (name,))}
        return zygote_launch(files, binding, {ORIGIN: f"{BINDING_FOLDER}/{name}"})

    async def start(self, launcher: Launcher) -> Worker:
        """Have the zygote fork a guest and return its worker once it is ready."""
        return await Worker.start(launcher)


def quickjs_version() -> str:
    """Return the installed version of quickjs-ng. Raise SandboxError when it is missing or not supported."""
    try:
        version = importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        raise SandboxError("the engine `quickjs` is not installed", hint=INSTALL) from None
    if not version.startswith(SUPPORTED_VERSION):
        message = f"the engine `quickjs` has version {version}, and {SUPPORTED_VERSION}x is required"
        raise SandboxError(message, hint=INSTALL)
    return version


def find_quickjs() -> str:
    """Return the path of quickjs-ng's binding. Raise SandboxError when another package has replaced it."""
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


ENGINE = QuickJSEngine()
