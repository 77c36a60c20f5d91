"""Python programs import the project's own modules, and use files where `[packages] mount` puts them. Threats S8, S16 and D8."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from gloveport import Gloveport, Outcome, Rule, tool
from gloveport.errors import OptionError
from gloveport.host.runs.run_file import FileWorkspace, exported, imported, read_run_file
from gloveport.store.stored_runs import StoredRuns
from tests.conftest import TOOLS
from tests.durable.test_resume import answer
from tests.packages.approved import Approved

pytestmark = pytest.mark.integration

MODULES = {
    "docx/helpers/x.py": "from .y import Y\nimport leaf\ndef x(path):\n    return [Y, open(path).read(), leaf.LEAF, __file__]\n",
    "docx/helpers/y.py": "Y = 'y'",
    "docx/helpers/x.mjs": "import fs from 'node:fs'; export const x = (path) => fs.readFileSync(path, 'utf8');",
    "docx/helpers/n.mjs": "export const n = () => 'n';",
    "whole/__init__.py": "from whole.part import part",
    "whole/part.py": "def part():\n    raise ValueError('in part')",
    "calls.py": "async def total(a, b):\n    return await tools.add(a=a, b=b)",
    "json.py": "raise SystemError('not this one')",
}

ASKS = [Rule("local.write", "ask")]


@tool(writes=True)
def write(value: int) -> int:
    """Write a value."""
    return value


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in the layout that the users of secure-exec know."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    Approved().add("pypi:leaf@1.0", {"leaf.py": "LEAF = 'a leaf'"})
    for name, text in MODULES.items():
        place = tmp_path / "project" / "skills" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    found = tmp_path / "project" / "gloveport.toml"
    found.write_text('[packages]\nmodules = "./skills"\nmount = { workspace = "/root/workspace" }\n')
    return found


async def run(settings: Path, code: str, **options: object) -> Outcome:
    async with Gloveport(tools=TOOLS, config=settings, spare=0) as port:
        return await port.run(code, language="python", **options)  # type: ignore[arg-type]


FORMS: dict[str, tuple[str, object]] = {
    "a module in folders": ("from docx.helpers.y import Y\nY", "y"),
    "a folder": ("import docx.helpers\ndocx.helpers.__name__", "docx.helpers"),
    "a package that imports itself by name": ("import whole\nwhole.part.__name__", "part"),
    "a module that calls tools": ("import calls\nawait calls.total(1, 2)", 3),
    "a folder on the path": ("import sys\nsys.path.insert(0, '/root/skills/docx/helpers')\nimport y\ny.Y", "y"),
    "a name in a text": ("import importlib\nimportlib.import_module('calls').__name__", "calls"),
    "the text of a module": ("import inspect, docx.helpers.y as y\ninspect.getsource(y)", "Y = 'y'\n"),
    "the standard library first": ("import calls, json\njson.dumps([1])", "[1]"),
}


@pytest.mark.parametrize("form", FORMS)
async def test_the_modules_of_a_project_are_imported(form: str, settings: Path) -> None:
    code, expected = FORMS[form]
    outcome = await run(settings, code)
    assert (outcome.status, outcome.value) == ("completed", expected), outcome


async def test_an_error_in_a_module_is_placed_where_the_program_calls_it(settings: Path) -> None:
    error = (await run(settings, "import whole\n\nwhole.part()")).error
    assert error is not None
    assert (error.message, error.line) == ("in part", 3)


async def test_a_misspelt_module_is_refused_with_the_one_that_was_meant(settings: Path) -> None:
    error = (await run(settings, "import cals")).error
    assert error is not None
    assert (error.code, error.hint) == ("import-refused", "write `import calls`")


async def test_a_link_and_what_is_no_text_are_not_imported(settings: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("SECRET = 1")
    (settings.parent / "skills" / "link.py").symlink_to(tmp_path / "secret.py")
    (settings.parent / "skills" / "folder").symlink_to(tmp_path)
    for code in ("import link", "from folder import secret"):
        error = (await run(settings, code)).error
        assert error is not None and error.code == "import-refused"
    (settings.parent / "skills" / "bytes.py").write_bytes(b"x = '\xff'")
    error = (await run(settings, "import calls")).error
    assert error is not None
    assert (error.code, "no text in UTF-8" in error.message) == ("package-failed", True)


USES = {
    "python": "from docx.helpers.x import x\nopen('out.txt', 'w').write('o')\n"
    "import os, sqlite3\nsqlite3.connect('table.db').execute('CREATE TABLE t (x)')\n"
    "[*x('/root/workspace/in.txt'), os.getcwd(), os.path.exists('/workspace'), os.stat('in.txt').st_mtime]",
    "typescript": 'import fs from "fs"; import { x } from "/root/skills/docx/helpers/x.mjs";'
    ' fs.writeFileSync("/root/workspace/out.txt", "o"); [x("/root/workspace/in.txt"), process.cwd(), fs.realpathSync("in.txt"),'
    ' import.meta.dirname, await files.read("/root/workspace/out.txt"), fs.existsSync("/workspace")]',
}
VALUES = {
    "python": ["y", "hello", "a leaf", "/root/skills/docx/helpers/x.py", "/root/workspace", False, 1e9],
    "typescript": ["hello", "/root/workspace", "/root/workspace/in.txt", "/root/workspace", "o", False],
}


@pytest.mark.parametrize("language", USES)
async def test_files_lie_where_the_settings_mount_them_also_in_a_replay(
    language: str, settings: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store.sqlite"
    async with Gloveport(config=settings, store=store, spare=0) as port:
        await port.session("kept").files.put("in.txt", b"hello")
        outcome = await port.run(USES[language], language=language, session="kept")  # type: ignore[arg-type]
        assert (outcome.status, outcome.value) == ("completed", VALUES[language]), outcome
        assert await port.session("kept").files.get("out.txt") == b"o"
        for path in settings.parent.glob("skills/**/x.*"):
            path.write_text("changed")
        assert await port.replay(outcome.run) is None
    elsewhere = tmp_path / "elsewhere.sqlite"
    with closing(StoredRuns(store)) as stored, closing(StoredRuns(elsewhere)) as others:
        (tmp_path / "run.json").write_bytes(exported(stored, stored.find(outcome.run)))
        imported(others, read_run_file(tmp_path / "run.json"))
    async with Gloveport(store=elsewhere, spare=0) as port:  # which mounts workspaces somewhere else
        assert await port.replay(outcome.run) is None


@pytest.mark.parametrize("language", ["python", "typescript"])
async def test_a_run_goes_on_with_the_modules_that_it_began_with(language: str, settings: Path, tmp_path: Path) -> None:
    code = {
        "python": "from docx.helpers.y import Y\n[Y, await tools.write(value=1)]",
        "typescript": 'import { n } from "docx/helpers/n.mjs"; [n(), await tools.write({ value: 1 })]',
    }[language]
    options = {"tools": [write], "config": settings, "store": tmp_path / "store.sqlite", "spare": 0, "rules": ASKS}
    async with Gloveport(**options) as port:
        waiting = await port.run(code, language=language)  # type: ignore[arg-type]
        assert waiting.status == "waiting", waiting
    for path in settings.parent.glob("skills/docx/helpers/*"):
        path.unlink()
    async with Gloveport(**options) as port:
        answer(tmp_path / "store.sqlite")
        outcome = await port.resume(waiting.run)
    assert (outcome.status, outcome.value) == ("completed", [{"python": "y", "typescript": "n"}[language], 1]), outcome


BAD_PLACES = [
    "/",
    "/usr/lib",
    "/guest",
    "/packages/x",
    "/root/../usr",
    "/root/a b",
    "/root/a,/etc",
    "workspace",
    "/proc",
    "/root//x",
]


@pytest.mark.parametrize("place", BAD_PLACES)
def test_a_workspace_can_not_lie_over_parts_of_the_sandbox(place: str, tmp_path: Path) -> None:
    settings = tmp_path / "gloveport.toml"
    settings.write_text(f"[packages]\nmount = {{ workspace = {json.dumps(place)} }}\n")
    with pytest.raises(OptionError, match="mount"):
        Gloveport(config=settings)
    with pytest.raises(OptionError, match="place where none can"):
        _ = FileWorkspace({}, (), 1, 1, place).recorded
