"""Sessions: files and state that several runs of an agent share; what a hostile program can't do with a workspace.

Threats S8, S16 and D8.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gloveport import Gloveport, Outcome
from gloveport.config.sessions import SessionsConfig
from gloveport.errors import OptionError, WorkspaceError
from gloveport.host.sessions.contents import MAX_STATE_BYTES
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.workspace import MAX_DEPTH, WorkspaceFiles, checked_path
from gloveport.types import MIB
from tests.conftest import TOOLS
from tests.sandbox.jail.stage import play

QUOTA = WorkspaceQuota(2 * MIB, 60)


@pytest.fixture(scope="module")
async def port(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gloveport]:
    config = tmp_path_factory.mktemp("sessions") / "gloveport.toml"
    config.write_text("[agents.other]\n")
    async with Gloveport(tools=TOOLS, config=config) as opened:
        opened._sessions.quota = QUOTA
        yield opened


async def python(port: Gloveport, code: str, session: str, **options: Any) -> Outcome:
    return await port.run(code, language="python", session=session, **options)


def mounted() -> str:
    return Path("/proc/self/mounts").read_text()


async def files(port: Gloveport, session: str) -> dict[str, int]:
    return {one.path: one.size for one in await port.session(session).files.list()}


USES_FILES = """
import os, pathlib, shutil, sqlite3, tempfile, zipfile
runs = pathlib.Path("runs.txt")
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
os.makedirs("/workspace/deep/down", exist_ok=True)
with sqlite3.connect("deep/table.db") as db:
    db.execute("CREATE TABLE IF NOT EXISTS t (x)")
    db.execute("INSERT INTO t VALUES (?)", (len(runs.read_text()),))
with zipfile.ZipFile("deep/down/all.zip", "w") as archive:
    archive.write("runs.txt")
shutil.copy("runs.txt", "copy.txt")
shutil.copytree("deep", "twice")
shutil.move("twice", "deep/twice")
shutil.rmtree("deep/twice")
os.replace("copy.txt", "deep/moved.txt")
with tempfile.TemporaryDirectory(dir="/workspace") as folder:
    pathlib.Path(folder, "x").touch()
state["runs"] = state.get("runs", 0) + 1
[os.getcwd(), runs.read_text(), db.execute("SELECT count(*) FROM t").fetchone()[0], state["runs"]]
"""


@pytest.mark.integration
async def test_runs_of_a_session_share_files_and_state_with_ordinary_python(port: Gloveport) -> None:
    first, second = await python(port, USES_FILES, "shared"), await python(port, USES_FILES, "shared")
    assert first.value == ["/workspace", "x", 1, 1], first.error
    assert second.value == ["/workspace", "xx", 2, 2], second.error
    kept = await files(port, "shared")
    assert set(kept) == {"runs.txt", "deep/table.db", "deep/down/all.zip", "deep/moved.txt"}
    assert kept["runs.txt"] == 2


@pytest.mark.integration
async def test_files_are_put_taken_listed_and_removed_from_outside(port: Gloveport) -> None:
    there = port.session("outside").files
    data = b"\x01" + bytes(range(256))  # the store begins what it encrypts like this
    await there.put("in/data.bin", data)
    outcome = await python(port, "data = open('in/data.bin', 'rb').read()\nopen('out', 'wb').write(data[::-1])", "outside")
    assert outcome.status == "completed", outcome.error
    assert (await there.get("in/data.bin"), await there.get("out")) == (data, data[::-1])
    await there.remove("in")
    assert await files(port, "outside") == {"out": 257}
    with pytest.raises(WorkspaceError, match="no file 'in'"):
        await there.get("in")


@pytest.mark.integration
@pytest.mark.parametrize(
    "ending", ["raise ValueError('no')", "while True: pass", "import ctypes\nctypes.string_at(0)", "state['f'] = print"]
)
async def test_a_run_that_fails_leaves_files_and_state_as_they_were(port: Gloveport, ending: str) -> None:
    await python(port, "open('kept', 'w').write('before')\nstate['kept'] = 1", "failing")
    code = f"import os\nos.remove('kept')\nopen('new', 'w').write('x')\nstate.clear()\n{ending}"
    assert (await python(port, code, "failing", limits={"wall_seconds": 1})).status == "failed"
    assert await files(port, "failing") == {"kept": 6}
    assert (await python(port, "state", "failing")).value == {"kept": 1}


@pytest.mark.integration
async def test_a_session_belongs_to_its_agent(port: Gloveport) -> None:
    await python(port, "open('mine', 'w').write('secret')\nstate['s'] = 1", "same-name")
    other = await python(port, "import os\n[os.listdir('.'), state]", "same-name", agent="other")
    assert other.value == [[], {}]
    assert await port.session("same-name", agent="other").files.list() == ()


@pytest.mark.integration
async def test_a_run_without_a_session_finds_no_workspace(port: Gloveport) -> None:
    outcome = await port.run("import os\nos.path.exists('/workspace')", language="python")
    assert outcome.value is False


@pytest.mark.integration
async def test_parallel_runs_of_a_session_queue_or_are_refused(port: Gloveport) -> None:
    count = "import asyncio\nn = state.get('n', 0)\nawait tools.add(1, 2)\nstate['n'] = n + 1"
    runs = [asyncio.create_task(python(port, count, "queue")) for _ in range(4)]
    await asyncio.sleep(0)
    refused = await python(port, count, "queue", on_busy="refuse")
    assert refused.error is not None and refused.error.code == "session-busy"
    assert {one.status for one in await asyncio.gather(*runs)} == {"completed"}
    assert (await python(port, "state['n']", "queue")).value == 4


SCRIPT = """
const runs = (await files.exists("runs.txt")) ? await files.read("runs.txt") : "";
await files.append("runs.txt", "x");
await files.write("deep/down/bytes", new Uint8Array([1, 2, runs.length]));
await files.move("deep/down/bytes", "moved/bytes");
await files.remove("deep");
state.runs = (state.runs ?? 0) + 1;
return [await files.read("runs.txt"), await files.readBytes("moved/bytes"), await files.list(), state.runs, process.cwd()];
"""


@pytest.mark.integration
async def test_typescript_and_python_share_a_session(port: Gloveport) -> None:
    assert (await port.run(SCRIPT, session="mixed")).status == "completed"
    outcome = await port.run(SCRIPT, session="mixed")
    listed = [{"path": "moved", "folder": True}, {"path": "runs.txt", "folder": False, "size": 2}]
    assert outcome.value == ["xx", bytes([1, 2, 1]), listed, 2, "/workspace"], outcome.error
    again = await python(port, "state['runs'] += 1\n[open('runs.txt').read(), open('moved/bytes', 'rb').read()]", "mixed")
    assert again.value == ["xx", bytes([1, 2, 1])]
    assert (await port.run("return state", session="mixed")).value == {"runs": 3}


SCRIPTS = {
    "outside": ("await files.read('/etc/passwd')", "program-failed"),
    "above": ("await files.write('../x', '')", "program-failed"),
    "the root": ("await files.list('/')", "program-failed"),
    "the prelude": ("await files.read('/guest/main.js')", "program-failed"),
    "bytes": ("await files.write('a', 'x'.repeat(3 << 20))", "workspace-full"),
    "many": ("for (let n = 0; n < 100; n++) await files.write(`${n}`, '')", "workspace-full"),
    "name": ("await files.write('a\\nb', '')", "workspace-refused"),
    "state": ("state.f = () => 1", "bad-value"),
    "thrown": ("await files.write('a', ''); throw new Error('no')", "program-failed"),
    "the platform": ("return Deno.readTextFileSync('/etc/passwd')", "program-failed"),
}


@pytest.mark.integration
@pytest.mark.parametrize("attempt", SCRIPTS)
async def test_a_script_reaches_its_workspace_alone_and_within_its_quota(port: Gloveport, attempt: str) -> None:
    code, ends_with = SCRIPTS[attempt]
    outcome = await port.run(code, session="scripts")
    assert outcome.error is not None and outcome.error.code == ends_with, outcome
    assert await files(port, "scripts") == {}


NODE = """
import fs from "fs";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { appendFile, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
const problem = async (work) => { try { return await work() } catch (error) { return [error.code, error.syscall] } };
await mkdir("out/deep", { recursive: true });
await writeFile(path.join("out", "rows.json"), JSON.stringify([1, 2]));
await appendFile("out/rows.json", "\\n", "utf8");
writeFileSync("out/deep/bytes", Uint8Array.of(0, 255));
fs.copyFileSync("out/deep/bytes", "out/copy");
fs.renameSync("out/copy", "/workspace/moved");
fs.cpSync("out", "twice", { recursive: true });
await rm("twice/deep", { recursive: true });
fs.unlinkSync("twice/rows.json");
fs.rmdirSync("twice");
const called = await new Promise((resolve) => fs.readFile("out/rows.json", "utf8", (error, text) => resolve([error, text])));
const about = await stat("moved");
return {
  listed: await readdir(".", { recursive: true }),
  typed: fs.readdirSync("out", { withFileTypes: true }).map((one) => [one.name, one.isDirectory()]),
  text: await readFile("out/rows.json", "utf8"), called,
  hex: readFileSync("moved").toString("hex"), base64: readFileSync("moved", "base64"),
  about: [about.size, about.isFile(), about.mtimeMs, fs.lstatSync("out").isDirectory()],
  exists: [existsSync("moved"), existsSync("gone"), fs.statSync("gone", { throwIfNoEntry: false })],
  problems: [
    await problem(() => readFile("gone")), await problem(() => readFile("/etc/passwd")),
    await problem(() => fs.accessSync("gone")), await problem(() => fs.mkdirSync("out")),
    await problem(() => fs.rmSync("out")), await problem(() => writeFile("moved", "", { flag: "wx" })),
  ],
  again: fs.promises.readFile === (await import("fs")).promises.readFile,
};
"""


@pytest.mark.integration
async def test_a_script_uses_the_functions_of_node_for_files(port: Gloveport) -> None:
    outcome = await port.run(NODE, language="javascript", session="node")
    assert outcome.value == {
        "listed": ["moved", "out", "out/deep", "out/deep/bytes", "out/rows.json"],
        "typed": [["deep", True], ["rows.json", False]],
        "text": "[1,2]\n",
        "called": [None, "[1,2]\n"],
        "hex": "00ff",
        "base64": "AP8=",
        "about": [2, True, 10**12, True],
        "exists": [True, False, None],
        "problems": [
            ["ENOENT", "open"],
            ["EACCES", "open"],
            ["ENOENT", "stat"],
            ["EEXIST", "mkdir"],
            ["ERR_FS_EISDIR", "rm"],
            ["EEXIST", "open"],
        ],
        "again": True,
    }, outcome.error
    assert await files(port, "node") == {"moved": 2, "out/deep/bytes": 2, "out/rows.json": 6}


@pytest.mark.integration
async def test_an_import_of_files_without_a_session_is_refused_before_the_run(port: Gloveport) -> None:
    for name in ("fs", "node:fs/promises"):
        refused = (await port.run(f"import {{ readFile }} from '{name}'; await readFile('a')")).error
        assert refused is not None
        assert (refused.code, "only the files of a session" in (refused.hint or "")) == ("import-refused", True)


@pytest.mark.integration
async def test_a_script_without_a_session_has_no_files(port: Gloveport) -> None:
    assert (await port.run("return [typeof files, state]")).value == ["undefined", {}]


# ── bombs: each ends with a code that names the quota, and leaves nothing ──

BOMBS = {
    "bytes": "open('a', 'wb').write(bytes(3 << 20))",
    "sparse": "with open('a', 'wb') as f: f.truncate(3 << 20)",
    "sparse together": "for n in range(2):\n    with open(f'{n}', 'wb') as f: f.truncate(3 << 19)",
    "files": "for n in range(100): open(f'{n}', 'w')",
    "folders": "import os\nfor n in range(100): os.mkdir(f'{n}')",
    "depth": f"import os\nfor n in range({MAX_DEPTH + 5}):\n    os.mkdir('d')\n    os.chdir('d')",
    "database": "import sqlite3\ndb = sqlite3.connect('d')\ndb.execute('CREATE TABLE t (x)')\nwhile True: db.execute("
    "'INSERT INTO t VALUES (zeroblob(100000))')",
    "state": "state['x'] = 'x' * 2_000_000",
}


@pytest.mark.integration
@pytest.mark.parametrize("bomb", BOMBS)
async def test_a_bomb_ends_with_a_code_that_names_the_quota(port: Gloveport, bomb: str) -> None:
    outcome = await python(port, BOMBS[bomb], "bombs")
    assert outcome.error is not None and outcome.error.code == "workspace-full", outcome
    assert await files(port, "bombs") == {}


SCRIPT_BOMBS = {
    "bytes": ("fs.writeFileSync('a', new Uint8Array(3 << 20))", "workspace-full"),
    "bytes by and by": ("for (;;) fs.appendFileSync('a', 'x'.repeat(10000))", "workspace-full"),
    "copies": (
        "fs.writeFileSync('a', new Uint8Array(1 << 20)); for (let n = 0;; n++) fs.copyFileSync('a', `${n}`)",
        "workspace-full",
    ),
    "files": ("for (let n = 0; n < 100; n++) fs.writeFileSync(`${n}`, '')", "workspace-full"),
    "folders": ("for (let n = 0; n < 100; n++) fs.mkdirSync(`${n}`)", "workspace-full"),
    "depth": (f"fs.mkdirSync('d/'.repeat({MAX_DEPTH + 5}), {{recursive: true}})", "workspace-full"),
    "long paths": (
        f"fs.mkdirSync(('x'.repeat(200) + '/').repeat({MAX_DEPTH // 4}), {{recursive: true}})",
        "workspace-full",
    ),
    "a long name": ("fs.writeFileSync('x'.repeat(300), '')", "program-failed"),
    "a name": ("fs.writeFileSync('a\\\\b', '')", "workspace-refused"),
    "a name in another form": ("fs.writeFileSync('e\\u0301', '')", "workspace-refused"),
    "a temporary folder": ("for (;;) fs.mkdtempSync('t')", "workspace-full"),
    "a link": ("(fs.symlinkSync ?? (() => { throw new Error('no') }))('/', 'a')", "program-failed"),
    "state": ("state.x = 'x'.repeat(2_000_000)", "workspace-full"),
}


@pytest.mark.integration
@pytest.mark.parametrize("bomb", SCRIPT_BOMBS)
async def test_a_bomb_of_a_script_ends_with_a_code_that_names_the_quota(port: Gloveport, bomb: str) -> None:
    code, ends_with = SCRIPT_BOMBS[bomb]
    outcome = await port.run(f"import fs from 'fs';\n{code}", session="bombs")
    assert outcome.error is not None and outcome.error.code == ends_with, outcome
    assert await files(port, "bombs") == {}


NAMES = [b"a\nb", b"a\\b", b" a", "e\u0301".encode(), b"\x80", "\u202e".encode(), b"x\x7f"]


@pytest.mark.integration
@pytest.mark.parametrize("name", NAMES)
async def test_a_name_that_is_not_plain_is_not_kept(port: Gloveport, name: bytes) -> None:
    outcome = await python(port, f"import os\nos.close(os.open({name!r}, os.O_CREAT))", "names")
    assert outcome.error is not None and outcome.error.code == "workspace-refused", outcome
    assert await files(port, "names") == {}


# ── attempts to get out, or to leave something behind that is no plain file ──

REFUSED = {
    "symlink": "import os\nos.symlink('/', 'link')",
    "hard link": "import os\nopen('a', 'w')\nos.link('a', 'b')",
    "link of a library": "import os, sys\nos.link(os.__file__, 'b')",
    "fifo": "import os\nos.mkfifo('pipe')",
    "device": "import os, stat\nos.mknod('device', stat.S_IFBLK | 0o666, os.makedev(8, 0))",
    "socket": "import socket\nsocket.socket(socket.AF_UNIX).bind('socket')",
    "exec": "import os\nopen('x', 'w').write('#!/usr/bin/python\\n')\nos.chmod('x', 0o755)\nos.execv('x', ['x'])",
    "library": "import ctypes, shutil, math, _sqlite3\nshutil.copy(_sqlite3.__file__, 'x.so')\nctypes.CDLL('/workspace/x.so')",
    "executable mapping": "import mmap\nopen('x', 'wb').write(bytes(4096))\nf = open('x', 'rb')\n"
    "mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)",
    "executable later": "import ctypes, mmap\nopen('x', 'wb').write(bytes(4096))\nf = open('x', 'r+b')\n"
    "m = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, 3)\nc = ctypes.CDLL(None)\n"
    "assert c.mprotect(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m))), 4096, 5) == 0",
    "shared mapping": "import mmap\nopen('x', 'wb').write(bytes(4096))\nf = open('x', 'r+b')\nmmap.mmap(f.fileno(), 4096)",
    "parent": "open('../escaped', 'w')",
    "listing of the root": "import os\nos.listdir('..')",
    "proc": "open('/proc/self/root/etc/passwd')",
    "mount": "import ctypes\nassert ctypes.CDLL(None).mount(b'x', b'/workspace', b'tmpfs', 0, 0) == 0",
    "unmount": "import ctypes\nassert ctypes.CDLL(None).umount2(b'/workspace', 2) == 0",
    "attribute": "import os\nopen('x', 'w')\nos.setxattr('x', 'user.a', b'b')",
    "lock": "import fcntl\nfcntl.lockf(open('x', 'w'), fcntl.LOCK_EX)",
    "rename over a folder of ours": "import os\nos.mkdir('x')\nos.rename('x', '/guest')",
    "exchange with the root": "import os\nos.rename('/workspace', '/other')",
    "file in the root": "open('/x', 'w')",
    "watch": "import ctypes\nassert ctypes.CDLL(None).inotify_init1(0) >= 0",
}


@pytest.mark.integration
@pytest.mark.parametrize("attempt", REFUSED)
async def test_a_workspace_is_no_way_out(port: Gloveport, attempt: str) -> None:
    outcome = await python(port, REFUSED[attempt], "hostile")
    assert outcome.status == "failed" and outcome.error is not None, outcome
    assert outcome.error.type in {"PermissionError", "OSError", "AssertionError", "FileNotFoundError"}, outcome.error
    assert await files(port, "hostile") == {}


@pytest.mark.integration
async def test_modes_and_times_that_a_program_sets_have_no_effect(port: Gloveport) -> None:
    code = "import os\nopen('x', 'w').write('x')\nos.utime('x', (1, 1))\nos.close(os.open('y', os.O_CREAT, 0))\nos.mkdir('z', 0)"
    assert (await python(port, code, "modes")).status == "completed"
    again = "import os, stat\nopen('y').close()\n[os.stat(n).st_mtime for n in 'xyz'] + os.listdir('z')"
    assert (await python(port, again, "modes")).value == [1e9, 1e9, 1e9]


@pytest.mark.integration
async def test_a_file_that_is_changed_in_place_is_read_anew(port: Gloveport) -> None:
    await port.session("inplace").files.put("a", b"1234")
    await python(
        port,
        "import os\nf = open('a', 'r+b')\nf.write(b'9')\nf.close()\nos.rename('a', 'b')\nopen('a', 'wb').write(b'abcd')",
        "inplace",
    )
    assert [await port.session("inplace").files.get(name) for name in "ab"] == [b"abcd", b"9234"]


@pytest.mark.integration
async def test_engines_without_a_workspace_are_refused(port: Gloveport) -> None:
    for language, engine in (("python", "monty"), ("python", "remote-cpython"), ("typescript", "quickjs")):
        with pytest.raises(OptionError, match="keeps no files"):
            await port.run("1", language=language, engine=engine, session="x")


@pytest.mark.integration
async def test_no_descriptor_or_mount_is_left_after_runs_of_sessions(port: Gloveport) -> None:
    await python(port, "1", "left")
    before, mounts = len(os.listdir("/proc/self/fd")), mounted()
    for ending in ("1", "raise OSError", "open('x', 'wb').write(bytes(9 << 20))") * 8:
        await python(port, ending, "left")
    assert len(os.listdir("/proc/self/fd")) < before + 20  # each worker that is ready has some
    assert mounted() == mounts


@pytest.mark.integration
async def test_a_session_works_for_an_ordinary_user() -> None:
    told = await play("session", {}, user="nobody", without=[])
    assert told == {"values": [["x", ["e"]], ["xx", ["e"]]], "errors": []}


@pytest.mark.integration
async def test_a_session_is_refused_where_no_namespaces_confine_it() -> None:
    told = await play("session", {}, user="reachable", without=["namespaces"])
    assert told["values"] == [None, None]
    assert all("a session needs namespaces" in error for error in told["errors"])
    assert len(told["errors"]) == 2


# ── without a sandbox ──


@pytest.mark.parametrize("path", ["", "/etc/passwd", "..", "a/../b", "a//b", "a/", ".", "a\0b", "a\nb", "C:\\x", "x" * 300])
def test_a_path_from_outside_is_plain(path: str) -> None:
    with pytest.raises(WorkspaceError):
        checked_path(path)


@pytest.mark.integration
async def test_files_and_folders_do_not_cross() -> None:
    async with Gloveport(spare=0) as port:
        there = port.session("crossed").files
        await there.put("a/b", b"")
        for path in ("a", "a/b/c"):
            with pytest.raises(WorkspaceError):
                await there.put(path, b"")


def test_contents_that_come_from_outside_keep_to_the_quota() -> None:
    WorkspaceFiles({"a": bytes(MIB)}).check(QUOTA)
    with pytest.raises(WorkspaceError):
        WorkspaceFiles({"a": bytes(3 * MIB)}).check(QUOTA)


def test_the_quota_is_that_of_the_reference() -> None:
    assert (SessionsConfig(), MAX_DEPTH, MAX_STATE_BYTES) == (SessionsConfig(32, 1000, 100, 30), 32, MIB)


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 65, 1, "-a"])
async def test_the_name_of_a_session_is_plain(name: Any) -> None:
    with pytest.raises(OptionError, match="can't be called"):
        await Gloveport().run("1", session=name)
