"""Sources over /v1, as the pages use it: added and removed in two steps, opened without a restart, signed in to."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gloveport import Gloveport
from gloveport.config import load_config
from gloveport.policy.credentials.vault import StoredCredential, Vault
from tests.policy.oauth_server import authorizing
from tests.surfaces.command import REPOSITORY
from tests.test_sources import ORDERS, Orders
from tests.web.conftest import DEMO, WebServed, web_serving

pytestmark = pytest.mark.integration
SHOP = REPOSITORY / "examples" / "shop.json"
SERVER = """
import pathlib, sys
pathlib.Path(sys.argv[1]).write_text("started")
from mcp.server.mcpserver import MCPServer
mcp = MCPServer("notes")
@mcp.tool()
def take(text: str) -> str:
    return text
mcp.run()
"""


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "XDG_CONFIG_HOME" / "gloveport").mkdir(parents=True)
    return tmp_path / "XDG_CONFIG_HOME" / "gloveport" / "gloveport.toml"


@asynccontextmanager
async def serving(tmp_path: Path) -> AsyncIterator[WebServed]:
    """Yield a server with the settings as they are now, once its sources are open."""
    store = tmp_path / "store.sqlite"
    port = Gloveport(sources=[str(DEMO)], config=await asyncio.to_thread(load_config), store=store, spare=1)
    async with web_serving(port, store) as served:
        await port.open()
        yield served


async def posted(client: httpx2.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    reply = await client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def rows(client: httpx2.AsyncClient) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in (await client.get("/v1/sources")).json()["sources"]}


async def test_a_file_is_shown_then_added_and_its_tools_can_be_called_at_once(tmp_path: Path, own_folders: Path) -> None:
    async with serving(tmp_path) as served, await served.browser() as client:
        shown = await posted(client, "/v1/sources", what=str(SHOP))
        assert (shown["made"], shown["opened"], shown["argv"], shown["file"]) == (False, True, None, str(own_folders))
        about = shown["source"]
        assert (about["name"], about["kind"], about["tools"]) == ("shop", "openapi", about["reads"] + about["writes"])
        assert "+[sources.shop]" in shown["diff"]
        assert not await asyncio.to_thread(own_folders.exists)
        assert "shop" not in await rows(client)
        made = await posted(client, "/v1/sources", what=str(SHOP), digest=shown["digest"])
        assert (made["made"], made["live"]) == (True, True)
        assert "[sources.shop]" in await asyncio.to_thread(own_folders.read_text)
        row = (await rows(client))["shop"]
        assert (row["state"], row["tools"], row["kind"]) == ("open", about["tools"], "openapi")
        found = (await client.post("/v1/search", json={"query": "orders", "source": "shop"})).json()
        assert found["total"] > 0
        again = await client.post("/v1/sources", json={"what": str(SHOP), "digest": shown["digest"]})
        assert (again.status_code, "already has [sources.shop]" in again.text) == (400, True)


async def test_another_digest_changes_nothing(tmp_path: Path, own_folders: Path) -> None:
    async with serving(tmp_path) as served, await served.browser() as client:
        shown = await posted(client, "/v1/sources", what=str(SHOP))
        first, _, second = shown["digest"].partition(".")
        for body in (
            {"what": str(SHOP), "digest": f"{first}.{second[::-1]}"},
            {"what": str(SHOP), "digest": f"x.{second}"},
            {"what": str(SHOP), "digest": shown["digest"], "name": "other"},
            {"what": str(SHOP), "digest": shown["digest"], "writes": True},
            {"what": str(SHOP), "digest": shown["digest"], "allow_private": True},
        ):
            reply = await client.post("/v1/sources", json=body)
            assert (reply.status_code, reply.json()["error"]["code"]) == (409, "out-of-date"), body
        await asyncio.to_thread(own_folders.write_text, "# mine\n")
        reply = await client.post("/v1/sources", json={"what": str(SHOP), "digest": shown["digest"]})
        assert reply.status_code == 409
        assert await asyncio.to_thread(own_folders.read_text) == "# mine\n"


async def test_a_command_starts_only_after_its_argv_was_shown(tmp_path: Path) -> None:
    script, canary = tmp_path / "server.py", tmp_path / "canary"
    await asyncio.to_thread(script.write_text, SERVER)
    what = f"{sys.executable} {script} {canary}"
    async with serving(tmp_path) as served, await served.browser() as client:
        for digest in ({}, {"digest": "x"}, {"digest": "x.y"}, {"digest": "." * 3}):
            reply = await client.post("/v1/sources", json={"what": what, "name": "notes", **digest})
            assert reply.status_code == (409 if digest else 200), reply.text
            assert not canary.exists()
        shown = await posted(client, "/v1/sources", what=what, name="notes")
        assert (shown["opened"], shown["argv"]) == (False, [sys.executable, str(script), str(canary)])
        assert shown["does"] == f"starts {sys.executable!r} {str(script)!r} {str(canary)!r}"
        assert not canary.exists()
        opened = await posted(client, "/v1/sources", what=what, name="notes", digest=shown["digest"])
        assert (opened["opened"], opened["made"]) == (True, False)
        assert "notes.take" in opened["source"]["examples"]
        assert canary.exists()
        assert "notes" not in await rows(client)
        made = await posted(client, "/v1/sources", what=what, name="notes", digest=opened["digest"])
        assert (made["made"], made["live"]) == (True, True)
        assert (await rows(client))["notes"]["state"] == "open"


async def test_a_python_file_is_imported_only_after_it_was_shown(tmp_path: Path) -> None:
    file, canary = tmp_path / "mine.py", tmp_path / "canary"
    await asyncio.to_thread(
        file.write_text, f"import pathlib\npathlib.Path({str(canary)!r}).touch()\ndef f() -> int: return 1\n"
    )
    async with serving(tmp_path) as served, await served.browser() as client:
        shown = await posted(client, "/v1/sources", what=str(file))
        assert (shown["opened"], shown["does"], canary.exists()) == (False, f"imports {str(file)!r}", False)
        opened = await posted(client, "/v1/sources", what=str(file), digest=shown["digest"])
        assert (opened["opened"], canary.exists()) == (True, True)


async def test_private_addresses_need_their_flag(tmp_path: Path) -> None:
    orders = Orders()
    async with serving(tmp_path) as served, await served.browser() as client:
        async with await asyncio.start_server(orders.answer, "127.0.0.1", 0) as server:
            what = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/openapi.json"
            refused = await client.post("/v1/sources", json={"what": what})
            assert refused.status_code == 502
            assert "allow_private" in refused.json()["error"]["hint"]
            shown = await posted(client, "/v1/sources", what=what, allow_private=True)
            assert "may reach loopback and private addresses" in shown["does"]
            assert "+allow_private = true" in shown["diff"]
            # The definition has changed since it was shown.
            orders.document = json.loads(json.dumps(ORDERS).replace("Get an order", "Send money"))
            reply = await client.post("/v1/sources", json={"what": what, "allow_private": True, "digest": shown["digest"]})
            assert (reply.status_code, reply.json()["error"]["code"]) == (409, "out-of-date")


async def test_what_can_not_be_added_is_explained(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, await served.browser() as client:
        for body, text in (
            ({"what": "./nowhere.json"}, "there is no file ./nowhere.json"),
            ({"what": str(SHOP), "name": "tools.x"}, "the name"),
            ({"what": str(SHOP), "name": "search"}, "Gloveport uses that name itself"),
            ({"what": str(SHOP), "name": "demo_tools"}, "already has a source `demo_tools`"),
            ({"what": str(SHOP), "file": "project"}, "there is no project here"),
            ({"what": str(SHOP), "kind": "openap"}, "there is no kind of source"),
            ({"what": "  "}, "there is no file"),
            ({"what": "a\0b.json"}, "a"),
        ):
            reply = await client.post("/v1/sources", json=body)
            assert (reply.status_code in (400, 404, 502), text in reply.json()["error"]["message"]) == (True, True), (
                reply.text
            )


async def test_a_source_is_removed_and_closed(tmp_path: Path, own_folders: Path) -> None:
    text = f'# mine\n[sources.shop]\nopenapi = "{SHOP}"\n\n[sources.other]\nopenapi = "{SHOP}"\n'
    await asyncio.to_thread(own_folders.write_text, text)
    async with serving(tmp_path) as served, await served.browser() as client:
        assert {"shop", "other", "demo_tools"} <= set(await rows(client))
        shown = await posted(client, "/v1/sources/shop/remove")
        assert ("-[sources.shop]" in shown["diff"], shown["made"]) == (True, False)
        wrong = await client.post("/v1/sources/shop/remove", json={"digest": "x"})
        assert wrong.status_code == 409
        assert await asyncio.to_thread(own_folders.read_text) == text
        made = await posted(client, "/v1/sources/shop/remove", digest=shown["digest"])
        assert (made["made"], made["live"]) == (True, True)
        after = await asyncio.to_thread(own_folders.read_text)
        assert ("# mine" in after, "[sources.shop]" in after, "[sources.other]" in after) == (True, False, True)
        assert set(await rows(client)) & {"shop", "other"} == {"other"}
        failed = (await client.post("/v1/runs", json={"code": "await tools.shop.orders.list({})"})).json()
        assert not failed["ok"]
        for name in ("demo_tools", "nobody"):
            reply = await client.post(f"/v1/sources/{name}/remove", json={})
            assert (reply.status_code, "in the settings" in reply.text) == (404, True)


async def test_a_source_that_was_broken_is_opened_by_a_refresh(tmp_path: Path, own_folders: Path) -> None:
    definition = tmp_path / "later.json"
    await asyncio.to_thread(own_folders.write_text, f'[sources.later]\nopenapi = "{definition}"\n')
    async with serving(tmp_path) as served, await served.browser() as client:
        row = (await rows(client))["later"]
        assert (row["state"], "does not exist" in row["problem"]) == ("broken", True)
        still = (await posted(client, "/v1/sources/later/refresh"))["source"]
        assert still["state"] == "broken"
        await asyncio.to_thread(definition.write_bytes, SHOP.read_bytes())
        fixed = (await posted(client, "/v1/sources/later/refresh"))["source"]
        assert (fixed["state"], fixed["problem"], fixed["tools"] > 0) == ("open", None, True)
        await asyncio.to_thread(definition.unlink)
        kept = (await posted(client, "/v1/sources/later/refresh"))["source"]
        assert (kept["state"], kept["tools"]) == ("open", fixed["tools"])
        assert any("its tools stay as they were" in text for text in kept["warnings"])
        assert (await client.post("/v1/sources/nobody/refresh", json={})).status_code == 404


async def test_a_run_that_began_before_a_refresh_goes_on(tmp_path: Path, own_folders: Path) -> None:
    file = tmp_path / "slow.py"
    code = "import asyncio\nasync def nap() -> str:\n    await asyncio.sleep(1)\n    return 'rested'\n"
    await asyncio.to_thread(file.write_text, code)
    await asyncio.to_thread(own_folders.write_text, f'[sources.slow]\nfunctions = "{file}"\n')
    async with serving(tmp_path) as served, await served.browser() as client:
        running = asyncio.create_task(client.post("/v1/runs", json={"code": "await tools.slow.nap({})"}))
        async with asyncio.timeout(30):
            while not (await client.get("/v1/runs")).json()["runs"]:  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.02)
        assert (await posted(client, "/v1/sources/slow/refresh"))["source"]["state"] == "open"
        assert (await running).json()["value"] == "rested"


async def test_credentials_are_listed_without_their_values(
    tmp_path: Path, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = "canary-value-of-a-secret"
    monkeypatch.setenv("MY_TOKEN", canary)
    settings = (
        '[sources.a]\ngraphql = "https://a.test/graphql"\n'
        '[sources.b]\ngraphql = "https://b.test/graphql"\ncredentials = { token = "env:MY_TOKEN" }\n'
        '[sources.c]\ngraphql = "https://c.test/graphql"\ncredentials = { token = "env:NOT_SET" }\n'
        f'[sources.d]\nmcp = ["{sys.executable}", "-c", "0"]\nenv = {{ KEY = "env:MY_TOKEN" }}\n'
    )
    await asyncio.to_thread(own_folders.write_text, settings)
    vault = Vault()
    vault.write(StoredCredential("a.token", "secret", ("https://a.test",), 1.0, 2.0), {"secret": canary})
    async with serving(tmp_path) as served, await served.browser("approver") as client:
        reply = await client.get("/v1/sources")
        assert canary not in reply.text
        found = {row["name"]: row["credentials"] for row in reply.json()["sources"]}
        states = {name: [(one["slot"], one["state"]) for one in found[name]] for name in "abcd"}
        assert states == {
            "a": [("token", "expired")],
            "b": [("token", "ready")],
            "c": [("token", "missing")],
            "d": [("KEY", "ready")],
        }
        assert found["b"][0]["from"] == "the variable MY_TOKEN"
        assert found["a"][0]["command"] == "gloveport auth login a"


async def test_a_person_signs_in_from_the_page_and_the_tools_appear(tmp_path: Path, own_folders: Path) -> None:
    async with authorizing() as server:
        text = f'[sources.it]\nmcp = "{server.origin}/mcp"\nallow_private = true\n'
        await asyncio.to_thread(own_folders.write_text, text)
        async with serving(tmp_path) as served, await served.browser() as client:
            row = (await rows(client))["it"]
            assert (row["state"], row["account"], row["credentials"][0]["state"]) == ("broken", True, "missing")
            run = (await client.post("/v1/runs", json={"code": "await tools.it.x({})"})).json()
            assert run["error"]["code"] == "auth-required"
            path = "/v1/sources/it/sign-in"
            shown = await posted(client, path)
            assert (shown["state"], server.origin in shown["question"], server.registered) == ("found", True, [])
            wrong = await client.post(path, json={"digest": "x"})
            assert (wrong.status_code, wrong.json()["error"]["code"]) == (409, "out-of-date")
            started = await posted(client, path, digest=shown["digest"])
            assert (started["state"], started["url"].startswith(f"{server.origin}/authorize?")) == ("waiting", True)
            assert (await client.get(path)).json()["url"] == started["url"]
            async with await served.browser("approver", "bo") as approver:
                seen = (await approver.get(path)).json()
            assert (seen["state"], seen["url"]) == ("waiting", None)
            async with httpx2.AsyncClient(trust_env=False, follow_redirects=True) as browser:
                assert "You are signed in" in (await browser.get(started["url"])).text
            async with asyncio.timeout(60):
                while (now := (await client.get(path)).json())["state"] == "waiting":  # noqa: ASYNC110 - over HTTP
                    await asyncio.sleep(0.02)
            assert now["state"] == "done", now
            assert "canary" not in json.dumps(now)
            credential = (await rows(client))["it"]["credentials"][0]
            assert (credential["state"], credential["issuer"]) == ("ready", server.origin)


async def test_a_sign_in_that_can_not_start_says_why(tmp_path: Path, own_folders: Path) -> None:
    async with authorizing() as server:
        text = f'[sources.it]\nmcp = "{server.origin}/mcp"\nallow_private = true\n[sources.shop]\nopenapi = "{SHOP}"\n'
        await asyncio.to_thread(own_folders.write_text, text)
        async with serving(tmp_path) as served, await served.browser() as client:
            server.metadata = {"code_challenge_methods_supported": None}
            reply = await client.post("/v1/sources/it/sign-in", json={})
            assert (reply.status_code, "PKCE" in reply.text) == (400, True)
            server.metadata = {"registration_endpoint": None}
            shown = await posted(client, "/v1/sources/it/sign-in")
            started = await posted(client, "/v1/sources/it/sign-in", digest=shown["digest"])
            assert (started["state"], "registers no clients" in started["problem"]) == ("failed", True)
            assert started["command"] == "gloveport auth login it"
            for name in ("demo_tools", "nobody"):
                assert (await client.post(f"/v1/sources/{name}/sign-in", json={})).status_code in (400, 404), name


async def test_only_an_admin_changes_sources_and_agents_see_names_alone(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        changes = ("/v1/sources", "/v1/sources/x/refresh", "/v1/sources/x/remove", "/v1/sources/x/sign-in")
        for role in ("agent", "host", "approver", "monitor"):
            async with await served.browser(role, "default") as client:
                for path in changes:
                    body = {"what": str(SHOP)} if path == "/v1/sources" else {}
                    assert (await client.post(path, json=body)).status_code == 403, (role, path)
        async with await served.browser("agent", "default") as client:
            found = (await client.get("/v1/sources")).json()["sources"]
            assert {name for row in found for name in row} == {"name", "state", "tools", "writes", "problem"}
            assert (await client.get("/v1/clients")).status_code == 403
            assert (await client.get("/v1/sources/demo_tools")).status_code == 403
        async with await served.browser() as client:
            reply = await client.post("/v1/sources", json={"what": str(SHOP)}, headers={"X-Gloveport": "1"})
            assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong-origin")


async def test_clients_get_the_text_that_connect_writes(tmp_path: Path) -> None:
    from gloveport.surfaces.mcp_clients import CLIENTS
    from tests.surfaces.command import gloveport

    async with serving(tmp_path) as served, await served.browser("approver") as client:
        found = (await client.get("/v1/clients", params={"origin": served.url})).json()
        assert [one["client"] for one in found["clients"]] == list(CLIENTS)
        for one in found["clients"]:
            printed = await asyncio.to_thread(
                gloveport, "connect", one["client"], "--url", f"{served.url}/mcp", "--print", HOME=str(tmp_path)
            )
            if one["client"] == "zed":
                assert (printed.code, one["http"]["snippet"]) == (2, None)
                assert one["http"]["problem"] in printed.err
            else:
                assert printed.out == one["http"]["snippet"], one["client"]
                assert "GLOVEPORT_TOKEN" in one["http"]["snippet"]
            assert '"mcp"' in one["stdio"]["snippet"]
        far = (await client.get("/v1/clients", params={"origin": "http://far.example"})).json()
        assert "in clear text" in far["clients"][0]["http"]["problem"]
