"""Programs import approved packages of npm and the project's own modules, in every JavaScript engine. Threats S16, D7 and D8."""

import time
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from gloveport import Gloveport, Outcome
from gloveport.host.bundles import script_bundles
from gloveport.host.runs.run_file import exported, imported, read_run_file
from gloveport.packages.package import Package, PackageId
from gloveport.packages.store import PackageFile, PackageStore
from gloveport.store.retention import prune_step
from gloveport.store.stored_runs import StoredRuns
from tests.conftest import TOOLS
from tests.packages.approved import Approved

pytestmark = pytest.mark.integration
ENGINES = pytest.mark.parametrize("engine", ["deno", "quickjs"])

ESM = {
    "package.json": '{"name": "esm", "type": "module", "exports": {".": "./index.js", "./deep": "./lib/deep.js"}}',
    "index.js": "export const one = 1; export default function twice(x) { return x * 2 }; export * from './lib/deep.js'",
    "lib/deep.js": "import data from './data.json'; export const deep = data.value; export let count = 0; count++",
    "lib/data.json": '{"value": "from json"}',
}
CJS = {
    "package.json": '{"name": "cjs", "main": "lib/main.js"}',
    "lib/main.js": "module.exports = function (x) { return [x, require('leaf')] }; module.exports.part = require('../part')",
    "part.js": "exports.name = 'part'",
}


@pytest.fixture
def approved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Approved:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    found = Approved()
    found.add("esm@1.0.0", ESM)
    found.add("leaf@1.0.0", {"index.js": "module.exports = 'leaf 1'"})
    found.add("leaf@2.0.0", {"index.js": "module.exports = 'leaf 2'"})
    found.add("cjs@1.0.0", CJS, "leaf@1.0.0")
    found.add(
        "@scope/both@1.0.0",
        {"index.js": "module.exports = [require('leaf'), require('cjs')(0)]"},
        "leaf@2.0.0",
        "cjs@1.0.0",
    )
    return found


async def value_of(code: str, engine: str | None = None, **options: object) -> object:
    async with Gloveport(tools=TOOLS, spare=0) as port:
        outcome = await port.run(code, engine=engine, **options)  # type: ignore[arg-type]
    assert outcome.status == "completed", outcome
    return outcome.value


FORMS: dict[str, tuple[str, object]] = {
    "names of ESM": ("import twice, { one, deep as d } from 'esm'; [twice(2), one, d]", [4, 1, "from json"]),
    "all of ESM": ("import * as all from 'esm'; Object.keys(all).sort()", ["count", "deep", "default", "one"]),
    "a path in ESM": ("import { deep, count } from 'esm/deep'; [deep, count]", ["from json", 1]),
    "the default of CommonJS": ("import cjs, { part } from 'cjs'; [cjs(1), part.name]", [[1, "leaf 1"], "part"]),
    "all of CommonJS": ("import * as all from 'cjs'; all.part.name", "part"),
    "a path in CommonJS": ("import { name } from 'cjs/part.js'; name", "part"),
    "a scope, and two versions": ("import both from '@scope/both'; both", ["leaf 2", [0, "leaf 1"]]),
    "the newest version": ("import leaf from 'leaf'; leaf", "leaf 2"),
    "require of CommonJS": ("const cjs = require('cjs'); cjs(2)", [2, "leaf 1"]),
    "require of ESM": ("const { one } = require('esm'); one", 1),
    "a later import": ("const { default: twice, one } = await import('esm'); twice(one)", 2),
    "one instance": ("import { part } from 'cjs'; import * as same from 'cjs/part.js'; part.name === same.name", True),
    "types": ("import { one, type Foo } from 'esm'; const x: Foo = one; x", 1),
    "a function form": ("import { one } from 'esm';\nexport default async () => one", 1),
}


@ENGINES
@pytest.mark.parametrize("form", FORMS)
async def test_packages_are_imported_as_in_node(form: str, engine: str, approved: Approved) -> None:
    code, expected = FORMS[form]
    assert await value_of(code, engine) == expected


async def test_a_default_that_is_not_there_is_answered_with_the_import_to_write(approved: Approved) -> None:
    async with Gloveport(spare=0) as port:
        outcome = await port.run("import deep from 'esm/deep'; deep")
    assert outcome.error is not None
    assert 'write `import * as name from "esm/deep"`' in outcome.error.message


async def test_an_error_in_a_package_is_placed_where_the_program_calls_it(approved: Approved) -> None:
    approved.add("broken@1.0.0", {"index.js": "exports.fail = () => { throw new RangeError('from inside') }"})
    async with Gloveport(spare=0) as port:
        outcome = await port.run("import { fail } from 'broken';\nconst x = 1;\n  fail(x)")
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.message) == ("RangeError", "from inside")
    assert (outcome.error.line, outcome.error.column) == (3, 3)


async def test_a_package_that_requires_what_is_not_there_fails_by_name(approved: Approved) -> None:
    approved.add("hungry@1.0.0", {"index.js": "exports.x = require('missing-thing')"})
    approved.add("native@1.0.0", {"index.js": "require('child_process').exec('id')"})
    async with Gloveport(spare=0) as port:
        outcome = await port.run("import { x } from 'hungry'; x")
        assert outcome.error is not None
        assert (outcome.error.code, "missing-thing" in outcome.error.message) == ("package-failed", True), outcome.error
        outcome = await port.run("import 'native'; 1")
        assert outcome.error is not None
        assert "'child_process'" in outcome.error.message


async def test_a_package_can_do_no_more_than_the_program(approved: Approved) -> None:
    """A package is hostile here: it looks for a way out, and changes what later modules see."""
    tries = (
        "const found = {};"
        "for (const name of ['Deno', 'Worker', 'Atomics', 'SharedArrayBuffer', 'localStorage', 'caches', 'WebSocket'])"
        "  found[name] = typeof globalThis[name];"
        "try { new Function('return 1')(); found.code = true } catch (e) { found.code = e.name }"
        "for (const name of ['fs', 'node:child_process', 'net', 'vm', 'worker_threads'])"
        "  try { require(name); found[name] = true } catch (e) { found[name] = e.code }"
        "found.main = typeof require.main; found.process = Object.keys(process.env).length; module.exports = found"
    )
    approved.add("hostile@1.0.0", {"index.js": tries})
    assert await value_of("import found from 'hostile'; found") == {
        **dict.fromkeys(
            ("Deno", "Worker", "Atomics", "SharedArrayBuffer", "localStorage", "caches", "WebSocket"), "undefined"
        ),
        "code": "EvalError",
        **dict.fromkeys(("fs", "node:child_process", "net", "vm", "worker_threads"), "MODULE_NOT_FOUND"),
        "main": "undefined",
        "process": 0,
    }


async def test_what_a_package_plants_is_gone_in_the_next_run(approved: Approved) -> None:
    approved.add(
        "planter@1.0.0", {"index.js": "globalThis.planted = (globalThis.planted ?? 0) + 1; exports.x = globalThis.planted"}
    )
    async with Gloveport(spare=0) as port:
        values = [(await port.run("import { x } from 'planter'; x")).value for _ in range(3)]
    assert values == [1, 1, 1]


async def test_a_bundle_is_made_once_and_again_when_a_package_changes(approved: Approved) -> None:
    code = "import { one } from 'esm'; one"
    assert await value_of(code) == 1
    bundles = approved.store.folder / "bundles"
    (first,) = bundles.iterdir()
    assert await value_of(code) == 1
    assert list(bundles.iterdir()) == [first]
    approved.add("esm@1.1.0", {**ESM, "index.js": "export const one = 11"})
    assert await value_of(code) == 11
    assert len(list(bundles.iterdir())) == 2
    assert {path.name for path in approved.store.folder.iterdir() if path.name.startswith(".bundle")} == set()


async def test_scripts_that_nobody_has_used_for_long_make_room(approved: Approved, monkeypatch: pytest.MonkeyPatch) -> None:
    bundles = approved.store.folder / "bundles"

    async def made(code: str) -> str:
        before = set(bundles.iterdir()) if bundles.exists() else set()
        await value_of(code)
        return next((path.name for path in set(bundles.iterdir()) - before), "")

    first, second = await made("import 'esm'; 1"), await made("import 'leaf'; 1")
    await made("import 'esm'; 2")  # it is used again
    monkeypatch.setattr(script_bundles, "MAX_KEPT", 2)
    third = await made("import 'cjs'; 1")
    assert second
    assert {path.name for path in bundles.iterdir()} == {first, third}
    monkeypatch.setattr(script_bundles, "MAX_KEPT_BYTES", 1)
    await made("import 'esm/deep'; 1")
    assert list(bundles.iterdir()) == []


async def test_a_run_with_packages_replays_after_they_are_gone(approved: Approved, tmp_path: Path) -> None:
    code = "import twice from 'esm'; await tools.add({a: twice(2), b: 1})"
    async with Gloveport(tools=TOOLS, store=tmp_path / "store.db", spare=0) as port:
        outcome = await port.run(code)
        assert outcome.value == 5, outcome
        approved.store.remove([PackageId.parse("npm:esm@1.0.0")])
        assert (await port.run(code)).error is not None
        assert await port.replay(outcome.run) is None


async def test_a_script_is_recorded_once_for_all_runs(approved: Approved, tmp_path: Path) -> None:
    text = "".join(sha256(b"%d" % n).hexdigest() for n in range(3000))
    approved.add("large@1.0.0", {"index.js": f"module.exports = '{text}'"})
    code = "import text from 'large'; text.length + input"
    path, elsewhere = tmp_path / "store.db", tmp_path / "elsewhere.db"
    async with Gloveport(tools=TOOLS, store=path, spare=0) as port:
        runs = [await port.run(code, input=n) for n in range(2)]
        await port.flush()
    with closing(StoredRuns(path)) as stored, closing(StoredRuns(elsewhere)) as others, stored.reading() as connection:
        (steps,) = connection.execute("SELECT sum(length(content)) FROM run_steps").fetchone()
        (contents,) = connection.execute("SELECT sum(length(content)) FROM payloads").fetchone()
        assert steps < 20_000 < len(text) // 2 < contents < len(text) * 2
        (tmp_path / "run.json").write_bytes(exported(stored, stored.find(runs[1].run)))
        imported(others, read_run_file(tmp_path / "run.json"))
        prune_step(connection, time.time_ns())
        assert connection.execute("SELECT count(*) FROM payloads").fetchone() == (0,)
    async with Gloveport(tools=TOOLS, store=elsewhere, spare=0) as port:
        assert await port.replay(runs[1].run) is None


async def test_without_the_bundler_the_person_is_told_what_fetches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    PackageStore().add(Package(PackageId.parse("npm:a@1.0.0"), "sha512-a"), [PackageFile("index.js", b"")])
    async with Gloveport(spare=0) as port:
        outcome = await port.run("import 'a'")
    assert outcome.error is not None
    assert outcome.error.code == "package-failed"
    assert "bundler" in outcome.error.message


# The project's own modules, in the layout that the users of secure-exec know.


@pytest.fixture
def project(approved: Approved, tmp_path: Path) -> Path:
    helpers = tmp_path / "project" / "skills" / "docx" / "helpers"
    helpers.mkdir(parents=True)
    (helpers / "x.mjs").write_text(
        "import twice from 'esm'; import { shared } from '../shared.ts'; export const x = () => twice(shared);"
    )
    (helpers.parent / "shared.ts").write_text(
        "import { join } from 'node:path'; export const shared: number = join('a', 'b').length;"
    )
    (helpers / "old.cjs").write_text("exports.old = require('cjs')('old')")
    (helpers / "calls.js").write_text("export const sum = (a, b) => tools.add({a, b})")
    settings = tmp_path / "project" / "gloveport.toml"
    settings.write_text(
        '[packages]\nmodules = "./skills"\nmount = { modules = "/root/skills", workspace = "/root/workspace" }\n'
    )
    return settings


MODULES: dict[str, tuple[str, object]] = {
    "an absolute path": ('import { x } from "/root/skills/docx/helpers/x.mjs"; x()', 6),
    "a path from the workspace": ('import { x } from "../skills/docx/helpers/x.mjs"; x()', 6),
    "a path below the folder": ('import { x } from "docx/helpers/x.mjs"; x()', 6),
    "CommonJS": ('const { old } = require("./docx/helpers/old.cjs"); old', ["old", "leaf 1"]),
    "a module that calls tools": ('import { sum } from "docx/helpers/calls.js"; await sum(1, 2)', 3),
    "a later import": ('(await import("/root/skills/docx/shared.ts")).shared', 3),
}


@pytest.mark.parametrize("form", MODULES)
async def test_the_modules_of_a_project_are_imported(form: str, project: Path) -> None:
    code, expected = MODULES[form]
    async with Gloveport(tools=TOOLS, config=project, spare=0) as port:
        outcome = await port.run(code)
    assert (outcome.status, outcome.value) == ("completed", expected), outcome


async def test_a_changed_module_is_used_by_the_next_run(project: Path) -> None:
    code = 'import { sum } from "docx/helpers/calls.js"; sum'
    async with Gloveport(config=project, spare=0) as port:
        (project.parent / "skills/docx/helpers/calls.js").write_text("export const sum = 'changed'")
        assert (await port.run(code)).value == "changed"


async def test_a_link_in_the_folder_of_modules_leads_nowhere(project: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.js").write_text("export const secret = 1")
    (project.parent / "skills/link.js").symlink_to(tmp_path / "secret.js")
    (project.parent / "skills/folder").symlink_to(tmp_path)
    (project.parent / "skills/up.js").write_text("export { secret } from '../../secret.js'")
    async with Gloveport(config=project, spare=0) as port:
        for name in ("link.js", "folder/secret.js", "../../secret.js"):
            outcome: Outcome = await port.run(f'import {{ secret }} from "/root/skills/{name}"; secret')
            assert outcome.error is not None
            assert outcome.error.code == "import-refused"
        outcome = await port.run('import { secret } from "/root/skills/up.js"; secret')
        assert outcome.error is not None
        assert outcome.error.code == "package-failed"


async def test_the_modules_of_a_found_project_need_trust(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gloveport.config import load_config

    monkeypatch.chdir(project.parent)
    assert load_config().packages.modules is None
    assert [each.name for each in load_config().ignored] == ["packages.modules", "packages.mount"]
    assert load_config(project).packages.modules == project.parent / "skills"


async def test_correct_imports_are_no_findings_of_the_type_checker(approved: Approved) -> None:
    code = "import { one, type Foo } from 'esm';\nimport type { Bar } from 'esm';\nconst a: Foo = one; const b: Bar = a;\nawait tools.add({a: b, b: 1})"
    async with Gloveport(tools=TOOLS, check_types=True, spare=0) as port:
        outcome = await port.run(code)
    assert (outcome.status, outcome.value, outcome.warnings) == ("completed", 2, ()), outcome
