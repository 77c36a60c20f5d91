"""Programs as models write them (tests/programs/): each comes to its expected outcome, as an agent sees it.

Nearly half of them have a mistake that models make. Its error must say enough to repair it, and `repaired/` has a form that
works.
"""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.config import SourceConfig
from gloveport.sandbox import type_checkers
from gloveport.sources.functions.modules import load_module
from gloveport.surfaces.agents.tools import AgentAnswer, AgentTools

pytestmark = pytest.mark.integration

PROGRAMS = Path(__file__).with_name("programs")
EXAMPLES = PROGRAMS.parents[1] / "examples"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((PROGRAMS / "expected.toml").read_text())
FAILING = [name for name, expected in EXPECTED.items() if "code" in expected]
LANGUAGES = {".ts": "typescript", ".js": "javascript", ".py": "python"}
PATHS = [path for path in sorted(PROGRAMS.rglob("*")) if path.suffix in LANGUAGES]
TEXTS = {path.relative_to(PROGRAMS).as_posix(): path.read_text() for path in PATHS}
LIMITS = {"wall_seconds": 600, "cpu_seconds": 1}
RUNS_AT_ONCE = 4
MAX_CHECK_SECONDS = 600.0


async def _answers() -> dict[str, AgentAnswer]:
    """Return the answer to each program, by its name below tests/programs."""
    shop = SourceConfig("shop", "openapi", str(EXAMPLES / "shop.json"))
    tools = load_module(str(EXAMPLES / "demo_tools.py"))
    async with Gloveport(tools=tools, sources=[shop], check_types=True, limits=LIMITS) as port:
        agent, room = AgentTools(port), asyncio.Semaphore(RUNS_AT_ONCE)

        async def answer(name: str) -> AgentAnswer:
            async with room:
                return await agent.call("execute", {"code": TEXTS[name], "language": LANGUAGES[Path(name).suffix]})

        return dict(zip(TEXTS, await asyncio.gather(*map(answer, TEXTS)), strict=True))


@pytest.fixture(scope="module")
def answers() -> dict[str, AgentAnswer]:
    with pytest.MonkeyPatch.context() as patched:  # on a busy machine, a program that is not checked fails otherwise
        for wait in ("START_SECONDS", "MAX_WAIT_SECONDS", "MAX_TURN_SECONDS"):
            patched.setattr(type_checkers, wait, MAX_CHECK_SECONDS)
        return asyncio.run(_answers())


def test_there_are_many_and_each_has_its_expected_outcome() -> None:
    found = {path.name for path in PROGRAMS.glob("*") if path.suffix in LANGUAGES}
    assert found == set(EXPECTED)
    assert {path.name for path in (PROGRAMS / "repaired").glob("*")} == set(FAILING)
    assert len(EXPECTED) >= 50
    assert len(FAILING) >= 25


@pytest.mark.parametrize("name", [name for name in EXPECTED if name not in FAILING])
def test_a_program_that_is_right_completes_without_a_warning(answers: dict[str, AgentAnswer], name: str) -> None:
    answer, expected = answers[name], EXPECTED[name]
    assert not answer.failed, answer.text
    assert answer.data["value"] == expected.get("value")
    assert answer.data["logs"] == expected.get("logs", "")
    assert answer.data["warnings"] == []


@pytest.mark.parametrize("name", FAILING)
def test_a_program_that_is_wrong_fails_with_what_a_reader_needs(answers: dict[str, AgentAnswer], name: str) -> None:
    answer, expected = answers[name], EXPECTED[name]
    assert answer.failed, answer.text
    error = answer.data["error"]
    assert (error["code"], error.get("line")) == (expected["code"], expected.get("line")), answer.text
    for part in expected["says"]:
        assert part in answer.text


@pytest.mark.parametrize("name", FAILING)
def test_the_repaired_program_completes_without_a_warning(answers: dict[str, AgentAnswer], name: str) -> None:
    answer = answers[f"repaired/{name}"]
    assert not answer.failed, answer.text
    assert answer.data["warnings"] == []
