"""A command gets the environment that the settings give, and its secrets are seen nowhere else."""

import os

import pytest

from gloveport.errors import SourceError, ToolError
from tests.sources.mcp.support import LIBRARY, call, on_stdio, opened, raw

SECRET = "s3cret-canary-1234"


@pytest.mark.integration
async def test_a_command_gets_what_is_given_and_little_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not for servers")
    async with opened(on_stdio(*LIBRARY, env={"MODE": "quiet"})) as source:
        seen = await call(source, "environment")
    seen.pop("LC_CTYPE", None)  # Python's own
    assert seen == {"MODE": "quiet", "PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}


@pytest.mark.integration
async def test_settings_may_replace_what_is_inherited() -> None:
    async with opened(on_stdio(*LIBRARY, env={"HOME": "/nowhere", "PATH": "/bin"})) as source:
        seen = await call(source, "environment")
    assert (seen["HOME"], seen["PATH"]) == ("/nowhere", "/bin")


@pytest.mark.integration
async def test_a_secret_reaches_the_command_and_is_blacked_out_where_the_command_shows_it() -> None:
    config = raw("secret", env={"TOKEN": "env:MY_TOKEN"})
    async with opened(config, {"MY_TOKEN": SECRET}) as source:
        assert await call(source, "echo") == "my token is •••(it.TOKEN)"
        with pytest.raises(ToolError) as caught:
            await call(source, "echo", die=True)
    assert "my token is •••(it.TOKEN)" in caught.value.message
    assert SECRET not in repr(vars(caught.value))


async def test_a_missing_secret_is_named() -> None:
    with pytest.raises(SourceError, match="TOKEN") as caught:
        async with opened(raw("secret", env={"TOKEN": "env:MY_TOKEN"}), {}):
            pass
    assert caught.value.code == "auth-required"
    assert caught.value.hint == "set MY_TOKEN"
