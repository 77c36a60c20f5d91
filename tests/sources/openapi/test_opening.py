"""Opening a definition: from a file or a URL, and compiled again only when something has changed."""

import dataclasses
import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, TooComplexError, ToolError
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress, Reply
from gloveport.sources.context import SourceContext
from gloveport.sources.openapi.frames import COMPILE_TASK
from gloveport.sources.openapi.loading import LoadedDefinition
from gloveport.sources.openapi.opening import open_definition, open_openapi
from gloveport.sources.opening import open_source
from tests.sources.in_process_tasks import InProcessTasks
from tests.sources.openapi.compiled import openapi, operation, returning


class Fetching(Egress):
    """Replaces the network: every request gets the same reply or error."""

    def __init__(self, reply: Reply | ToolError) -> None:
        self._reply = reply
        self.asked: list[str] = []

    async def send(self, request: Any, reach: Any, attachments: Any = ()) -> Reply:
        self.asked.append(request.url)
        if isinstance(self._reply, ToolError):
            raise self._reply
        return self._reply


NOWHERE = ToolError("nothing listens there", code="source-unreachable", hint="start it")


def outside(folder: Path, reply: Reply | ToolError = NOWHERE) -> SourceContext:
    return SourceContext(Fetching(reply), EnvironmentCredentials({}, {}), folder / "cache", InProcessTasks())


def configured(location: Path | str, **rest: Any) -> SourceConfig:
    return SourceConfig("things", "openapi", str(location), **rest)


@pytest.fixture
def api(tmp_path: Path) -> Path:
    path = tmp_path / "api.json"
    path.write_text(json.dumps(operation(responses=returning({"$ref": "pet.json"}))))
    (tmp_path / "pet.json").write_text('{"type": "string"}')
    return path


async def test_a_definition_is_compiled_once(tmp_path: Path, api: Path) -> None:
    world = outside(tmp_path)
    cache, warnings = await open_definition(configured(api), world)
    with closing(cache):
        heads = cache.heads()
        assert len(heads) == 1 and warnings == ()
    cache, _ = await open_definition(configured(api, base_url="https://other.example"), world)
    with closing(cache):
        assert cache.heads() == heads
    assert isinstance(world.tasks, InProcessTasks) and world.tasks.ran == [COMPILE_TASK]


def make_change(change: str, folder: Path, api: Path) -> None:
    if change == "document":
        api.write_text(api.read_text().replace("/things", "/other"))
    elif change == "summary":
        api.write_text(api.read_text().replace('"get": {', '"get": {"summary": "Changed.", '))
    elif change == "sibling":
        (folder / "pet.json").write_text('{"type": "integer"}')
    else:
        for path in (folder / "cache").iterdir():
            path.write_bytes(path.read_bytes()[:3000])


@pytest.mark.parametrize("change", ["document", "sibling", "damage"])
async def test_a_change_is_compiled_anew(tmp_path: Path, api: Path, change: str) -> None:
    cache, _ = await open_definition(configured(api), outside(tmp_path))
    with closing(cache):
        (before,) = cache.heads()
    make_change(change, tmp_path, api)
    cache, _ = await open_definition(configured(api), outside(tmp_path))
    with closing(cache):
        (after,) = cache.heads()
        assert (after.fingerprint == before.fingerprint) is (change == "damage")
        assert cache.definition(after.address)


async def test_a_missing_file_is_noticed_when_it_appears(tmp_path: Path, api: Path) -> None:
    away, pet = tmp_path / "away.json", tmp_path / "pet.json"
    os.rename(pet, away)
    cache, warnings = await open_definition(configured(api), outside(tmp_path))
    cache.close()
    assert "pet.json" in warnings[0]
    os.rename(away, pet)
    cache, warnings = await open_definition(configured(api), outside(tmp_path))
    cache.close()
    assert warnings == ()


async def test_a_definition_from_a_url(tmp_path: Path) -> None:
    url = "https://api.example.com/v1/openapi.json"
    body = json.dumps(openapi({"/a": {"get": {}}}, servers=[{"url": "/v1"}])).encode()
    world = outside(tmp_path, Reply(200, {}, body, url))
    cache, warnings = await open_definition(configured(url), world)
    with closing(cache):
        assert cache.facts["servers"] == ["https://api.example.com/v1"] and warnings == ()
    assert isinstance(world.egress, Fetching) and world.egress.asked == [url]


async def test_a_definition_that_was_downloaded_already_is_not_fetched_again(tmp_path: Path) -> None:
    body = json.dumps(openapi({"/a": {"get": {}}}, servers=[{"url": "/v1"}])).encode()
    world = outside(tmp_path)
    loaded = LoadedDefinition(body, "https://api.example.com/redirected/openapi.json")
    source = await open_openapi(configured("https://api.example.com/openapi.json"), world, loaded)
    assert source.source_info().server == "https://api.example.com/v1"
    assert isinstance(world.egress, Fetching) and not world.egress.asked
    await source.close()


@pytest.mark.parametrize(
    ("reply", "reason"), [(Reply(404, {}, b"no", "https://x"), "status 404"), (NOWHERE, "nothing listens there")]
)
async def test_a_url_that_does_not_answer_is_a_clear_error(tmp_path: Path, reply: Reply | ToolError, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        await open_definition(configured("https://api.example.com/openapi.json"), outside(tmp_path, reply))


@pytest.mark.parametrize("location", ["missing.json", ".", "\0", "/dev/zero"])
async def test_a_file_that_can_not_be_read_is_a_clear_error(tmp_path: Path, location: str) -> None:
    with pytest.raises(SourceError, match="the definition of the source things"):
        await open_definition(configured(location), outside(tmp_path))


async def test_a_file_whose_server_is_relative_asks_for_a_base_url(tmp_path: Path) -> None:
    path = tmp_path / "api.json"
    path.write_text(json.dumps(openapi({"/a": {"get": {}}}, servers=[{"url": "/v1"}])))
    cache, warnings = await open_definition(configured(path), outside(tmp_path))
    cache.close()
    assert "base_url" in warnings[0]
    cache, warnings = await open_definition(configured(path, base_url="https://x.example"), outside(tmp_path))
    cache.close()
    assert warnings == ()


class Overwhelmed(InProcessTasks):
    """Implements `TaskRunner`: every definition takes too long."""

    async def run(self, task: str, parts: Any, *, answer: Any = None) -> list[bytes]:
        raise TooComplexError("reading it takes too much CPU time")


async def test_a_definition_that_takes_too_long_is_refused_with_its_name_and_place(tmp_path: Path, api: Path) -> None:
    context = dataclasses.replace(outside(tmp_path), tasks=Overwhelmed())
    with pytest.raises(SourceError) as caught:
        await open_source(configured(api), context)
    assert caught.value.code == "definition-too-complex"
    assert "things" in caught.value.message and str(api) in caught.value.message
    assert caught.value.hint is not None and "part of the definition" in caught.value.hint


async def test_every_tool_is_shown_as_it_was_accepted_after_a_change(tmp_path: Path, api: Path) -> None:
    world = outside(tmp_path)
    before = await open_openapi(configured(api), world)
    digest, (tool,) = before.source_info().definition_digest, before.tools()
    await before.close()
    make_change("summary", tmp_path, api)
    source = await open_openapi(configured(api), world)
    earlier = source.earlier_tool(tool.address, digest)
    assert earlier is not None and earlier.description == tool.description != source.tools()[0].description
    assert source.earlier_tool("things.unknown", digest) is None and source.earlier_tool(tool.address, "0" * 64) is None
    await source.close()
