"""The lists of an agent and of a run narrow what programs import, of npm and of PyPI, on every surface. Threats D7 and S16."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gloveport import Gloveport, Outcome
from gloveport.errors import OptionError
from gloveport.store.snippets import Snippet, SnippetStore
from tests.packages.approved import Approved
from tests.surfaces.agents import AUTHORIZATION, http_client, http_server
from tests.surfaces.command import gloveport

pytestmark = pytest.mark.integration

SETTINGS = """
[packages]
allow = ["npm:leaf", "npm:tree", "pypi:leaf", "pypi:tree"]
[agents.default]
packages = ["npm:leaf", "pypi:leaf"]
[agents.free]
[agents.none]
packages = []
"""
PROGRAMS = {"typescript": "import x from '%s'; x", "python": "import %s\n%s.x"}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Settings that list less for one agent than for another, and packages that are approved."""
    folder = tmp_path_factory.mktemp("lists")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DATA", "CONFIG", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name))
        approved = Approved()
        for name in ("leaf", "other"):
            approved.add(f"{name}@1.0.0", {"index.js": f"module.exports = '{name} of npm'"})
            approved.add(f"pypi:{name}@1.0", {f"{name}.py": f"x = '{name} of PyPI'\n"})
        approved.add("tree@1.0.0", {"index.js": "module.exports = 'tree on ' + require('leaf')"}, "leaf@1.0.0")
        approved.add("pypi:tree@1.0", {"tree.py": "import leaf\nx = 'tree on ' + leaf.x\n"}, "pypi:leaf@1.0")
        user = folder / "CONFIG" / "gloveport" / "gloveport.toml"
        user.parent.mkdir(parents=True)
        user.write_text(SETTINGS)
        yield user


def program(language: str, name: str) -> str:
    return PROGRAMS[language].replace("%s", name)


def code_of(outcome: Outcome) -> str | None:
    return None if outcome.error is None else outcome.error.code


@pytest.mark.parametrize("language", PROGRAMS)
async def test_lists_of_settings_agent_and_run_all_hold(language: str, config: Path) -> None:
    prefix = "npm" if language == "typescript" else "pypi"
    async with Gloveport(config=config, spare=0) as port:

        async def found(name: str, **options: Any) -> Any:
            outcome = await port.run(program(language, name), language=language, **options)  # type: ignore[arg-type]
            return outcome.value if outcome.error is None else outcome.error.code

        assert str(await found("leaf")).startswith("leaf of")
        assert str(await found("tree", agent="free")).startswith("tree on leaf of")
        assert str(await found("tree", agent="free", packages=[f"{prefix}:tree"])).startswith("tree on leaf of")
        refused = [
            await found("tree"),
            await found("other", agent="free"),  # approved, and not in [packages] allow
            await found("leaf", agent="none"),
            await found("leaf", packages=[]),
            await found("leaf", agent="free", packages=[f"{prefix}:tree"]) if prefix == "npm" else "import-refused",
            await found("tree", packages=[f"{prefix}:tree"]),  # a run can't widen the list of its agent
            await found("other", agent="free", packages=[f"{prefix}:other"]),
        ]
        assert refused == ["import-refused"] * 7
        with pytest.raises(OptionError):
            await found("leaf", packages=["leaf"])


async def test_a_late_import_and_a_module_of_the_project_follow_the_lists(config: Path, tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "helper.mjs").write_text("import x from 'tree'; export const seen = x")
    settings = tmp_path / "gloveport.toml"
    settings.write_text(SETTINGS.replace("[packages]", '[packages]\nmodules = "./skills"'))
    async with Gloveport(config=settings, spare=0) as port:
        for code in ("(await import('tree')).default", "require('tree')", "import t from 'npm:tree'; t"):
            assert code_of(await port.run(code)) == "import-refused"
            assert code_of(await port.run(code, agent="free")) is None
        helper = "import { seen } from '/root/skills/helper.mjs'; seen"
        assert (await port.run(helper, agent="free")).value == "tree on leaf of npm"
        refused = await port.run(helper)
        assert refused.error is not None
        assert "tree" in refused.error.message


async def test_a_snippet_gets_the_lists_of_the_run_that_calls_it(config: Path, tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    code = program("typescript", "tree")
    with closing(SnippetStore(path)) as store:
        grown = Snippet(
            name="grown", code=code, tools={}, language="typescript", engine="deno", parameters=None, description=""
        )
        store.save(grown, "ada")
    async with Gloveport(config=config, spare=0, store=path) as port:
        call = "await tools.snippets.grown()"
        assert (await port.run(call, agent="free")).value == "tree on leaf of npm"
        for options in ({}, {"agent": "none"}, {"agent": "free", "packages": ["npm:leaf"]}):
            outcome = await port.run(call, **options)  # type: ignore[arg-type]
            assert code_of(outcome) == "import-refused", outcome


async def test_a_run_that_follows_a_plan_keeps_its_list(config: Path, tmp_path: Path) -> None:
    async with Gloveport(config=config, spare=0, store=tmp_path / "store.sqlite") as port:
        listed = await port.run("import x from 'leaf'; x", packages=["npm:leaf"], mode="plan")
        assert listed.plan is not None
        assert (await port.apply(listed.plan)).value == "leaf of npm"
        stored = await port._durable._store.find(listed.run)  # type: ignore[union-attr]
        assert stored.request["packages"] == ["npm:leaf"]


async def test_over_http_and_mcp_the_list_of_the_agent_holds(config: Path) -> None:
    async with http_server(Gloveport(config=config)) as url:
        async with httpx2.AsyncClient(headers=AUTHORIZATION, base_url=url, trust_env=False, timeout=60) as http:

            async def found(name: str, language: str = "typescript", **body: Any) -> Any:
                asked = {"code": program(language, name), "language": language, **body}
                reply = (await http.post("/v1/runs", json=asked)).json()
                return reply.get("value") or reply.get("error", reply)["code"]

            assert await found("leaf") == "leaf of npm"
            assert await found("leaf", "python") == "leaf of PyPI"
            assert await found("leaf", packages=["npm:leaf"]) == "leaf of npm"
            refused = [
                await found("tree"),
                await found("tree", "python"),
                await found("leaf", packages=[]),
                await found("leaf", "python", packages=["npm:leaf"]),
                await found("tree", packages=["npm:tree"]),
            ]
            assert refused == ["import-refused"] * 5
            assert await found("leaf", packages=["leaf"]) == "bad-option"
        async with http_client(url, "2026-07-28") as client:
            works = await client.call_tool("execute", {"code": program("typescript", "leaf")})
            assert not works.is_error, works
            for language in PROGRAMS:
                refused = await client.call_tool("execute", {"code": program(language, "tree"), "language": language})
                assert refused.is_error
                assert "tree" in str(refused.content)


def test_on_the_command_line_the_list_of_the_agent_holds(config: Path, tmp_path: Path) -> None:
    for language, prefix in (("typescript", "npm"), ("python", "PyPI")):
        asked = ("run", "--no-input", "--json", "--language", language, "--code")
        works = gloveport(*asked, program(language, "leaf"), cwd=tmp_path)
        assert works.document["value"] == f"leaf of {prefix}", works
        refused = gloveport(*asked, program(language, "tree"), cwd=tmp_path)
        assert refused.document["error"]["code"] == "import-refused", refused
        shown = gloveport("run", "--no-input", "--language", language, "--code", program(language, "tree"), cwd=tmp_path)
        assert f"setting: {prefix.lower()}:tree is approved, but not listed" in shown.err
