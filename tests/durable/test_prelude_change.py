"""A run that was paused with one version of the guest's prelude goes on with another one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gloveport
from gloveport import Gloveport
from tests.durable.host import TOOLS
from tests.durable.test_resume import ENGINES, answer

pytestmark = pytest.mark.integration

PROGRAMS = {
    "typescript": """
console.log("before");
const seen = await Promise.all([3, 1, 2].map((n) => step("look", () => tools.look({n}))));
await new Promise((done) => setTimeout(done, 5));
const failed = await tools.look({n: "x" as any}).catch((e: any) => e.code);
const paid = await tools.slow_pay({n: seen[0]});
console.log("after");
return [seen, failed, paid, Math.random() < 1];
""",
    "python": """
import asyncio
print("before")
seen = await asyncio.gather(*[step("look", tools.look, n) for n in (3, 1, 2)])
await asyncio.sleep(0.005)
try:
    await tools.look(n="x")
except ToolError as error:
    failed = error.code
paid = await tools.slow_pay(n=seen[0])
print("after")
[seen, failed, paid, True]
""",
}
# Another version: log lines have other texts, and internals another structure. Each text must be there exactly once.
CHANGES = {
    "deno": {
        "javascript/output.js": {"${quote(kept)}]`": "${quote(`changed: ${kept}`)}]`"},
        "javascript/steps.js": {"`${outer}/${name}`": "`${outer} > ${name}`", "let used = false;": "let used = true;"},
        "javascript/timers.js": {"let nextId = 1;": "let nextId = 1000;"},
    },
    "cpython": {
        "cpython/guest/gloveport_guest/output.py": {"{quote(kept)}]'": '{quote("changed: " + kept)}]\''},
        "cpython/guest/gloveport_guest/steps.py": {"    outer = _get()\n": "    outer = 'new'\n"},
    },
    "monty": {
        "monty/driver.py": {
            "self._lines.take(printed):\n": "self._lines.take(printed):\n            text = f'changed: {text}'\n"
        },
        "monty/guest/prelude.py": {"state = {}": "_gloveport_version = 2\nstate = {}"},
    },
}
CHANGES["quickjs"] = CHANGES["deno"]


def changed_package(folder: Path, engine: str) -> Path:
    """A copy of the package with another prelude."""
    package = folder / "gloveport"
    shutil.copytree(Path(gloveport.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, changes in CHANGES[engine].items():
        path = package / "sandbox" / "engines" / name
        text = path.read_text()
        for before, after in changes.items():
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, after)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(("language", "engine"), ENGINES, ids=[engine for _, engine in ENGINES])
async def test_a_run_goes_on_with_a_changed_prelude(tmp_path: Path, language: Any, engine: str) -> None:
    store = tmp_path / "store.sqlite"
    async with Gloveport(tools=TOOLS, store=store, spare=1) as port:
        waiting = await port.run(PROGRAMS[language], language=language, engine=engine)
        assert waiting.status == "waiting", waiting.error
    answer(store)
    # `slow_pay` never returns; in the other host it does.
    script = (
        "import sys; sys.argv[1:1] = sys.argv.pop(1).split(); import asyncio, tests.durable.host as host, gloveport\n"
        "async def slow_pay(n: int) -> str: return f'paid {n}'\n"
        "slow_pay.__doc__ = host.slow_pay.__doc__; others = [one for one in host.TOOLS if one is not host.slow_pay]\n"
        "host.TOOLS = (*others, gloveport.tool(writes=True)(slow_pay))\n"
        "from pathlib import Path; asyncio.run(host.main(Path(sys.argv[1]), 'resume', sys.argv[3]))"
    )
    root = Path(__file__).parent.parent.parent
    copy = changed_package(tmp_path / "copy", engine)
    args = f"{store} {tmp_path / 'effects'} {waiting.run}"
    env = {**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{root}", "ASK": "1"}
    found = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", script, args],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stderr.decode()
    told = json.loads(found.stdout)
    assert told["value"] == [[6, 2, 4], "bad-arguments", "paid 6", True], told
    assert told["logs"] == ["before", "changed: after"]
