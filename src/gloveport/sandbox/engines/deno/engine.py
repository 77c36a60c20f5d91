"""Deno: the engine for TypeScript and JavaScript, without permissions, in the jail."""

from __future__ import annotations

from gloveport.errors import SandboxError
from gloveport.sandbox import wire
from gloveport.sandbox.engines.engine import Capability, ProcessOptions, installed_version
from gloveport.sandbox.engines.javascript.bundle import OWN_MODULES, prelude
from gloveport.sandbox.jail.workspace import WORKSPACE, WorkspaceQuota
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.sandbox.worker import Worker
from gloveport.types import Language

GUEST_FOLDER = "/guest"
# Below a file, so that Deno can't create it and keeps its caches in memory: nothing in the jail needs to be writable.
DENO_DIR = f"{GUEST_FOLDER}/main.js/none"

# No allow flag, and no way to load code from elsewhere: the default list of import hosts would be a way out.
FLAGS = (
    "--no-prompt",
    "--no-config",
    "--no-lock",
    "--no-remote",
    "--no-npm",
    "--cached-only",
    "--deny-import",
    "--no-code-cache",
)
ENVIRONMENT = {
    "DENO_DIR": DENO_DIR,
    "DENO_EMIT_CACHE_MODE": "disable",  # trying to write it would cost the first TypeScript import 150 ms
    "DENO_NO_UPDATE_CHECK": "1",
    "NO_COLOR": "1",
    "TZ": "UTC",
    "LANG": "C.UTF-8",
}

# To format a stack, Deno compiles the program's TypeScript again on its main thread and asks the C library for the size of
# its stack. The C library reads this file; without it the engine aborts. The line allows any size.
STACK_MAP = {"/proc/self/maps": b"1000-ffffffffffffffff rw-p 00000000 00:00 0 [stack]\n"}

# The modules of Node that compute and do nothing else. Those with parts that a replay can't repeat lack these parts.
_BUILTIN_MODULES = """
    assert assert/strict async_hooks buffer crypto events path path/posix punycode querystring stream stream/promises
    string_decoder url util util/types zlib
"""
BUILTIN_MODULES = (*_BUILTIN_MODULES.split(), *OWN_MODULES)


class DenoEngine:
    """Deno, from the `deno` package. Every run gets a process of its own, started in advance."""

    name = "deno"
    languages: tuple[Language, ...] = ("typescript", "javascript")
    distribution = "deno"
    subset = None
    substitute = None
    builtin_modules: tuple[str, ...] = BUILTIN_MODULES
    capabilities = (
        Capability("typescript", "yes", "types are stripped, enums and generics work; types are not checked"),
        Capability("await", "yes", "top-level await and return; parallel calls with Promise.all"),
        Capability("eval", "off", "eval and new Function: Gloveport(allow_eval=True) or --allow-eval"),
        Capability("wasm", "off", "WebAssembly: Gloveport(allow_wasm=True) or --allow-wasm"),
        Capability("network", "off", "fetch, by rules; the host makes the requests"),
        Capability("files", "off", "`files` in runs with session=; else there is no file system"),
        Capability("packages", "off", "approved npm packages; Node's modules that only compute"),
    )

    def version(self) -> str:
        """Return the installed version. Raise SandboxError when there is no Deno."""
        find_deno()
        return installed_version("deno") or "(unknown version)"

    def process_options(self, wanted: ProcessOptions) -> ProcessOptions:
        """Return the options as they are: Deno fixes all of them when it starts."""
        return wanted

    def launch(self, options: ProcessOptions) -> Launch:
        """Return how to start a Deno that waits for a program."""
        script = f"(async () => {{\n{prelude('deno')}\n}})()".encode()
        return Launch(
            executable=find_deno(),
            argv=(
                "deno",
                "run",
                *FLAGS,
                *_workspace_flags(options.workspace),
                f"--v8-flags={','.join(_v8_flags(options))}",
                f"{GUEST_FOLDER}/main.js",
                "wasm" if options.allow_wasm else "",
                WORKSPACE if options.workspace is None else options.workspace.path,
            ),
            env=ENVIRONMENT,
            files={
                f"{GUEST_FOLDER}/main.js": (_ENTRY % len(script)).encode(),
                **STACK_MAP,
            },
            workspace=options.workspace,
            first_input=script,
            idle_input=wire.pack(b'["rehearse"]'),
        )

    async def start(self, launcher: Launcher) -> Worker:
        """Start a process and return its worker once the prelude is ready."""
        return await Worker.start(launcher)


# A module that runs a script from the pipe: Deno would compile each module before V8 does, and probe a dozen paths.
_ENTRY = f"""
const {{ core }} = Deno[Deno.internal];
const script = new Uint8Array(%d);
for (let end = 0; end < script.length;) {{
  const read = core.readSync(0, script.subarray(end));
  if (!read) Deno.exit(0);
  end += read;
}}
const [running, failed] = core.evalContext(core.decode(script), "file://{GUEST_FOLDER}/main.js");
if (failed) throw failed.thrown;
await running;
"""


def _workspace_flags(workspace: WorkspaceQuota | None) -> tuple[str, ...]:
    """Return the permissions for `files`; the jail has nothing else that could be written to."""
    return () if workspace is None else (f"--allow-read={workspace.path}", f"--allow-write={workspace.path}")


def _v8_flags(options: ProcessOptions) -> list[str]:
    # The seed makes the engine's own randomness (such as form boundaries) reproducible; the guest's Math.random is ours.
    # Compiling a batch of baseline code takes longer than a short program runs, so the first batch is delayed.
    flags = ["--random-seed=1", f"--max-old-space-size={options.memory_mb}", "--baseline-batch-compilation-threshold=16384"]
    if not options.allow_eval:
        flags.append("--disallow-code-generation-from-strings")
    return flags


def find_deno() -> str:
    """Return the path of the Deno binary of the `deno` package."""
    try:
        from deno import find_deno_bin
    except ImportError:
        raise SandboxError("the engine `deno` is not installed", hint="pip install deno") from None
    try:
        return str(find_deno_bin())
    except FileNotFoundError as error:
        raise SandboxError(f"the engine `deno` has no binary: {error}", hint="pip install --force-reinstall deno") from None


ENGINE = DenoEngine()
