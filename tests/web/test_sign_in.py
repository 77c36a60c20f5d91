"""Signing in to the pages: one-time links, cookies, and what another page can't do with them (M1, M14, M16)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import stat
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gloveport.errors import OptionError
from gloveport.policy.credentials import Secret
from gloveport.surfaces.http import revocation, token
from gloveport.surfaces.http.token import Caller, TokenCheck
from gloveport.surfaces.web import sessions as web_sessions
from gloveport.surfaces.web.links import LinkServer, asked_link, page_url, servers_folder
from gloveport.surfaces.web.sessions import IDLE_SECONDS, MAX_SESSION_SECONDS, MAX_SESSIONS, WebSessions
from gloveport.surfaces.web.views import CHOICES, TABS, TWINS
from tests.surfaces.agents import TOKEN
from tests.surfaces.command import terminal
from tests.surfaces.test_guard import send
from tests.web.conftest import DEMO, WebServed

pytestmark = pytest.mark.integration
JSON = {"Content-Type": "application/json"}


async def _signs_in(served: WebServed, code: str) -> httpx2.Response:
    async with served.client() as client:
        return await client.post("/v1/sign-in", json={}, headers={"Authorization": f"Link {code}"})


async def test_a_code_signs_in_once(served: WebServed) -> None:
    code = served.code("approver", "oncall")
    first = await _signs_in(served, code)
    assert (first.status_code, first.json()["role"], first.json()["name"]) == (201, "approver", "oncall")
    assert first.headers["cache-control"] == "no-store"
    for wrong in (code, "x", "x" * 43, code[:-1]):
        refused = await _signs_in(served, wrong)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
        assert "gloveport open" in refused.json()["error"]["message"]


async def test_a_code_is_worth_nothing_at_any_other_address(served: WebServed) -> None:
    code = served.code()
    async with served.client(Authorization=f"Link {code}") as client:
        for path in ("/v1/me", "/v1/sign-in", "/v1/runs", "/mcp", "/metrics", "/runs.json"):
            assert (await client.get(path)).status_code == 401, path
    assert (await _signs_in(served, code)).status_code == 201


async def test_of_two_requests_with_one_code_one_signs_in(served: WebServed) -> None:
    code = served.code()
    replies = await asyncio.gather(*(_signs_in(served, code) for _ in range(8)))
    assert sorted(reply.status_code for reply in replies) == [201] + [401] * 7


def _sessions(now: list[float]) -> WebSessions:
    return WebSessions(TokenCheck(Secret(TOKEN, "token")), lambda: now[0])


def _headers(cookie: str) -> dict[str, str]:
    return {"host": "127.0.0.1:8484", "cookie": f"gloveport-1=x; gloveport-8484={cookie}"}


async def test_codes_and_sessions_expire() -> None:
    now = [1000.0]
    sessions = _sessions(now)
    code, _ = sessions.new_code(Caller("ada", "admin"), 300)
    now[0] += 300
    assert sessions.redeem(f"Link {code}") is None
    idle, _ = sessions.open(Caller("ada", "admin"), None)
    now[0] += IDLE_SECONDS - 1
    assert await sessions.find(_headers(idle))
    now[0] += IDLE_SECONDS
    assert await sessions.find(_headers(idle)) is None
    busy, _ = sessions.open(Caller("ada", "admin"), None)
    began = now[0]
    while now[0] - began < MAX_SESSION_SECONDS:
        assert await sessions.find(_headers(busy))
        now[0] += IDLE_SECONDS / 2
    assert await sessions.find(_headers(busy)) is None


async def test_the_oldest_sessions_and_codes_give_way_when_there_are_too_many() -> None:
    now = [0.0]
    sessions = _sessions(now)
    cookies = []
    for _ in range(MAX_SESSIONS + 1):
        now[0] += 1
        cookies.append(sessions.open(Caller("ada", "admin"), None)[0])
    found = [await sessions.find(_headers(cookie)) for cookie in cookies]
    assert [one is None for one in found] == [True] + [False] * MAX_SESSIONS
    codes = [sessions.new_code(Caller("ada", "admin"))[0] for _ in range(web_sessions.MAX_CODES + 1)]
    assert sessions.redeem(f"Link {codes[0]}") is None
    assert sessions.redeem(f"Link {codes[1]}") == Caller("ada", "admin")


async def test_no_caller_ends_the_sessions_or_the_codes_of_another_one() -> None:
    sessions = _sessions([0.0])
    person, agent = Caller("ada", "admin"), Caller("default", "agent")
    cookie, _ = sessions.open(person, None)
    code, _ = sessions.new_code(person)
    for _ in range(3 * MAX_SESSIONS):
        sessions.open(agent, TOKEN)
        sessions.new_code(agent)
    assert await sessions.find(_headers(cookie))
    assert sessions.redeem(f"Link {code}") == person


async def test_the_cookie_is_for_this_server_alone(served: WebServed) -> None:
    port = served.url.rpartition(":")[2]
    reply = await _signs_in(served, served.code())
    name, *rest = reply.headers["set-cookie"].split("; ")
    assert name.startswith(f"gloveport-{port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(rest)
    assert not any(each.startswith(("Domain", "Secure")) for each in rest)
    async with served.client(Origin=served.url.replace("http:", "https:")) as client:
        reply = await client.post("/v1/sign-in", json={}, headers={"Authorization": f"Link {served.code()}"})
        assert "Secure" in reply.headers["set-cookie"].split("; ")  # a proxy with TLS is in front
    assert reply.json()["key"] not in reply.headers["set-cookie"]


async def test_a_session_has_the_role_of_its_link(served: WebServed) -> None:
    statuses: dict[str, list[int]] = {}
    asked = ("/v1/me", "/v1/runs", "/v1/approvals", "/v1/audit", "/v1/agents", "/metrics", "/mcp", "/v1/host")
    for role, name in (("admin", "ada"), ("approver", "ada"), ("agent", "reader"), ("monitor", "prom")):
        async with await served.browser(role, name) as client:
            statuses[role] = [(await client.get(path)).status_code for path in asked]
            assert (await client.get("/v1/me")).json()["role"] == role
    assert statuses == {
        "admin": [200, 200, 200, 200, 200, 200, 401, 404],
        "approver": [200, 200, 200, 200, 403, 200, 401, 404],
        "agent": [200, 200, 403, 403, 403, 403, 401, 404],
        "monitor": [200, 403, 403, 403, 403, 200, 401, 404],
    }


async def test_an_agent_that_signs_in_sees_its_own_things_alone(served: WebServed) -> None:
    async with served.bearer(TOKEN) as client:
        run = (await client.post("/v1/runs", json={"code": "1 + 1"})).json()["run"]
    async with await served.browser("agent", "reader") as client:
        assert (await client.get("/v1/runs")).json()["runs"] == []
        for path in (f"/v1/runs/{run}", f"/runs/{run}.json"):
            assert (await client.get(path)).status_code == 404, path
        tools = (await client.get("/tools.json")).json()["tools"]
        assert [each["path"] for each in tools] == ["demo_tools.list_customers"]
    with pytest.raises(OptionError):
        served.code("agent", "nobody")


async def test_mcp_takes_no_cookie(served: WebServed) -> None:
    async with await served.browser("agent", "default") as client:
        reply = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert reply.status_code == 401


async def test_every_view_is_json_too_with_the_same_checks(served: WebServed) -> None:
    async with await served.browser() as admin, await served.browser("agent", "reader") as agent, served.client() as nobody:
        made = (await admin.post("/v1/runs", json={"code": "2 + 2"})).json()["run"]
        while (await admin.get("/v1/runs")).json()["runs"][0]["status"] != "completed":  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)  # its end is written a moment after it was answered
        for view, path in {**TWINS, f"/runs/{made}": f"/v1/runs/{made}", "/index": "/v1/me"}.items():
            twin, real = await admin.get(f"{view}.json"), await admin.get(path)
            assert (twin.status_code, twin.json()) == (real.status_code, real.json()), view
            assert twin.headers["content-security-policy"] == real.headers["content-security-policy"]
            assert (await agent.get(f"{view}.json")).status_code == (await agent.get(path)).status_code, view
            assert (await nobody.get(f"{view}.json")).status_code == 401, view
        assert (await admin.get("/runs.json?status=failed")).json()["runs"] == []
        addresses = {f"{view}.json?view={tab}": path for (view, tab), path in TABS.items()}
        addresses |= {f"{view}.json?{'=a&'.join(names)}=a": TWINS[view] for view, names in CHOICES.items()}
        addresses |= {
            f"/runs/{made}.json?call=1&line=2": f"/v1/runs/{made}",
            "/audit.json?kind=run-*&event=x": "/v1/audit?kind=run-*",
        }
        for address, path in addresses.items():
            twin, real = await admin.get(address), await admin.get(path)
            assert (twin.status_code, twin.json()) == (real.status_code, real.json()), address
        for wrong in ("/runs.json?view=x", "/audit.json?call=1", "/runs.json?status=failed&status=failed"):
            assert (await admin.get(wrong)).status_code == 400, wrong
        assert (await admin.post("/runs.json", json={"code": "1"})).status_code == 401


async def test_what_changes_something_needs_the_origin_and_the_key(served: WebServed) -> None:
    async with await served.browser() as client:
        key, run = client.headers["X-Gloveport"], {"code": "40 + 2"}
        assert (await client.post("/v1/runs", json=run)).json()["value"] == 42
        for wrong in ("1", "", key[:-1], f"{key}x"):
            reply = await client.post("/v1/runs", json=run, headers={"X-Gloveport": wrong})
            assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong-origin"), wrong
        for method, path in (("POST", "/v1/approvals/answer"), ("DELETE", "/v1/agents/agent/x"), ("PUT", "/v1/runs")):
            reply = await client.request(method, path, json={}, headers={"X-Gloveport": "1"})
            assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong-origin"), (method, path)
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    for origin in ("http://127.0.0.1:1", "https://evil.example", "null", "", None):
        given = [] if origin is None else [f"Origin: {origin}"]
        reply = await send(served.url, f"Cookie: {cookie}", f"X-Gloveport: {key}", *given, path="/v1/runs", token=None)
        assert (reply.status, reply.code) == (403, "wrong-origin"), origin
    reply = await send(
        served.url, f"Cookie: {cookie}", f"Origin: {served.url}", path="/v1/runs", token=None, body=json.dumps(run).encode()
    )
    assert (reply.status, reply.code) == (403, "wrong-origin")  # no key


async def test_the_cookie_alone_reads_nothing(served: WebServed) -> None:
    # Browsers send it to every port of this host: another user may listen there, and send it to us.
    async with await served.browser() as client:
        run = (await client.post("/v1/runs", json={"code": "1"})).json()["run"]
        key = client.headers.pop("X-Gloveport")
        paths = [
            *(f"{view}.json" for view in TWINS),
            *TWINS.values(),
            f"/v1/runs/{run}",
            f"/v1/runs/{run}/events",
            "/metrics",
        ]
        for path in paths:
            for wrong in ({}, {"X-Gloveport": "1"}, {"X-Gloveport": key[:-1]}):
                reply = await client.get(path, headers=wrong)
                assert (reply.status_code, reply.json()["error"]["code"]) == (401, "unauthorized"), path
        assert (await client.get(f"/v1/runs/{run}", headers={"X-Gloveport": key})).status_code == 200


async def test_the_pages_are_at_numeric_addresses(served: WebServed) -> None:
    # `localhost` is 127.0.0.1 and ::1. Who listens at the one that is free would get what a browser keeps for the name.
    port = served.url.rpartition(":")[2]
    async with served.client(Host=f"localhost:{port}") as client:
        for path in ("/", "/sign-in", "/runs?status=failed", "/runs/a%0d%0ab%23"):
            reply = await client.get(path)
            assert (reply.status_code, reply.headers["location"]) == (307, served.url + path.replace("%0d%0a", "%0D%0A"))
        assert (await client.get("/healthz")).status_code == 200
    async with served.client(Host="localhost") as client:
        assert (await client.get("/runs")).headers["location"] == "http://127.0.0.1/runs"


async def test_a_browser_at_an_address_that_is_none_gets_a_page_and_a_program_does_not(served: WebServed) -> None:
    async with served.client(Accept="text/html,*/*") as browser, served.client() as program:
        for path in ("/nothing", "/runs/a/b", "/approval"):
            reply = await browser.get(path)
            assert (reply.status_code, reply.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
            assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
            assert (await program.get(path)).status_code == 401
            assert (await browser.post(path)).status_code == 401
        for path in ("/v1/nothing", "/mcp", "/metrics", "/nothing.json", "/.well-known/x"):
            assert (await browser.get(path)).headers["content-type"] == "application/json", path
        assert (await browser.get("/nothing", headers={"Host": "evil.example"})).status_code == 403


async def test_a_websocket_signs_nobody_in(served: WebServed) -> None:
    code = served.code()
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {'x' * 22}==")
    reply = await send(served.url, *upgrade, f"Authorization: Link {code}", method="GET", path="/v1/sign-in", token=None)
    assert (reply.status, reply.code) == (401, "unauthorized")
    assert (await _signs_in(served, code)).status_code == 201


@pytest.mark.parametrize("content", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_a_form_can_change_nothing(served: WebServed, content: str) -> None:
    async with await served.browser() as client:
        reply = await client.post("/v1/runs", content=b'{"code": "1"}', headers={"Content-Type": content})
        assert (reply.status_code, reply.json()["error"]["code"]) == (415, "not-json")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
async def test_another_site_reads_neither_documents_nor_streams(served: WebServed, site: str) -> None:
    async with await served.browser() as client:
        run = (await client.post("/v1/runs", json={"code": "1"})).json()["run"]
        for path in ("/v1/me", f"/v1/runs/{run}/events", "/runs.json"):
            reply = await client.get(path, headers={"Sec-Fetch-Site": site})
            assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong-origin"), path
        own = await client.get(f"/v1/runs/{run}/events", headers={"Sec-Fetch-Site": "same-origin"})
        assert own.headers["content-type"].startswith("text/event-stream")
        assert "event: status" in own.text


async def test_signing_out_ends_the_session(served: WebServed) -> None:
    async with await served.browser() as client:
        cookies = dict(client.cookies)
        reply = await client.post("/v1/sign-out", json={})
        assert reply.status_code == 200
        assert "Max-Age=0" in reply.headers["set-cookie"]
        for name, value in cookies.items():
            client.cookies.set(name, value)
        assert (await client.get("/v1/me")).status_code == 401


async def test_a_session_opens_no_other_one(served: WebServed) -> None:
    async with await served.browser() as client:
        assert (await client.post("/v1/sign-in", json={})).status_code == 403


async def test_a_session_ends_with_the_token_that_it_was_opened_with(
    served: WebServed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token, "READ_SECONDS", 0.0)
    monkeypatch.setattr(revocation, "CHECK_SECONDS", 0.05)
    given = served.add_token("far", "approver")
    async with await served.browser(token=given) as client:
        assert (await client.get("/v1/me")).json()["name"] == "far"
        async with served.bearer(TOKEN) as agent:
            code = "await new Promise((done) => setTimeout(done, 30000))"
            run = (await agent.post("/v1/runs", json={"code": code, "wait": False})).json()["run"]
            async with client.stream("GET", f"/v1/runs/{run}/events") as events:
                assert events.status_code == 200
                served.remove_token("far", "approver")
                async with asyncio.timeout(20):
                    async for _ in events.aiter_lines():
                        pass
            assert (await client.get("/v1/me")).status_code == 401
            await agent.post(f"/v1/runs/{run}/cancel", json={})


# The socket of `gloveport open`


async def _asked(*options: Any) -> Any:
    def ask() -> Any:
        with asked_link(*options) as (answer, connection):
            return answer, connection.makefile("rb").readline

    return await asyncio.to_thread(ask)


async def test_a_running_server_gives_its_user_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("long" * 40)  # longer than the address of a socket may be
    monkeypatch.setenv("XDG_DATA_HOME", str(deep))
    sessions = _sessions([0.0])
    with pytest.raises(OptionError, match="no server of yours runs"):
        await _asked("admin", "default", None)
    async with LinkServer("http://127.0.0.1:7", 7, sessions).serving():
        path = servers_folder() / "7.socket"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        answer, _ = await _asked("agent", "default", None)
        url, _, code = answer["url"].partition("#")
        assert url == "http://127.0.0.1:7/sign-in"
        assert sessions.redeem(f"Link {code}") == Caller("default", "agent")
        with pytest.raises(OptionError, match="at port 8"):
            await _asked("admin", "default", 8)
    assert not path.exists()


async def test_the_socket_answers_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    async with LinkServer("http://127.0.0.1:7", 7, _sessions([0.0])).serving():
        monkeypatch.setattr("os.geteuid", lambda: 4711)  # as if the server were another user's
        reader, writer = await asyncio.open_unix_connection(servers_folder() / "7.socket")
        writer.write(b'{"role": "admin", "agent": "default"}\n')
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()


@pytest.mark.parametrize(
    "asked", [b"", b"{}", b"[]", b"1", b'{"role": "root", "agent": "x"}', b'{"role": "admin", "agent": 1}', b"{" * 9000]
)
async def test_the_socket_gives_nothing_for_other_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: bytes
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    async with LinkServer("http://127.0.0.1:7", 7, _sessions([0.0])).serving():
        reader, writer = await asyncio.open_unix_connection(servers_folder() / "7.socket")
        writer.write(asked + b"\n")
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
        assert (await _asked("admin", "default", None))[0]["ok"]


def test_a_page_is_at_an_address_that_a_browser_can_open() -> None:
    assert page_url("0.0.0.0", 1) == "http://127.0.0.1:1"
    assert page_url("::", 1) == "http://[::1]:1"
    assert page_url("::1", 1) == "http://[::1]:1"
    assert page_url("192.168.0.9", 1) == "http://192.168.0.9:1"


def test_serve_prints_a_link_on_a_terminal_and_open_another_one(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    with terminal("serve", str(DEMO), "--port", "0", columns=200, **home) as server:
        shown = server.until(r"Press Ctrl-C to stop")
        link = re.findall(r"http://127.0.0.1:\d+/sign-in#[\w-]{43}", shown)[-1]
        # What gloveport open starts here is no browser, but it gets what a browser would.
        browser = tmp_path / "browser"
        browser.write_text('#!/bin/sh\ncp "${1#file://}" "$HOME/opened.html"\nstat -c %a "${1#file://}" > "$HOME/mode"\n')
        browser.chmod(0o700)
        with terminal("open", "--role", "approver", columns=200, BROWSER=str(browser), **home) as opener:
            printed = opener.until(r"/sign-in#[\w-]{43}")
            fresh = printed[printed.index("http") :].strip()
            code = fresh.partition("#")[2]
            base = fresh.partition("/sign-in")[0]
            with httpx2.Client(base_url=base, trust_env=False) as client:
                opened = tmp_path / "opened.html"
                reply = client.post("/v1/sign-in", json={}, headers={"Authorization": f"Link {code}"})
                assert (reply.status_code, reply.json()["role"]) == (201, "approver")
                first = client.post("/v1/sign-in", json={}, headers={"Authorization": f"Link {link.partition('#')[2]}"})
                assert (first.status_code, first.json()["role"]) == (201, "admin")
            status, rest = opener.rest()
            assert status == 0
            assert "signed in as approver" in rest
        assert fresh in opened.read_text()
        assert (tmp_path / "mode").read_text().strip() == "600"
        assert not list((tmp_path / "data" / "gloveport").glob("open-*"))
        assert fresh != link
        server.press(b"\x03")
        _, rest = server.rest()
        assert code not in rest
