"""`fetch` of programs, on every engine: what it does, what is refused, and that each request is an ordinary call."""

import gzip
import json
import socket
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gloveport import Answer, ApprovalRequest, EgressRule, Gloveport, Outcome, Rules
from gloveport.policy.egress import Egress, connect
from tests.engines import ENGINES, Engine
from tests.policy.servers import Dialled, Server, ok, redirect, serving
from tests.policy.test_egress_spellings import FORBIDDEN, OTHERS, UNREADABLE

pytestmark = pytest.mark.integration

every_engine = pytest.mark.parametrize("engine", ENGINES, ids=str)
BINARY = bytes(range(256)) * 4


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[Server]:
    answers = {
        "/json": ok(b'{"a": [1, "\xc3\xa9"]}', "Content-Type: application/json", "X-Two: 1", "X-Two: 2"),
        "/bin": ok(BINARY),
        "/gzip": ok(gzip.compress(b"hello " * 1000), "Content-Encoding: gzip"),
        "/missing": ok(b"nope", status="404 Not Found"),
        "/empty": ok(b"", status="204 No Content"),
        "/cookie": ok(b"", "Set-Cookie: id=1; Path=/"),
        "/loop": redirect("/loop"),
        **{f"/{status}": redirect("/json?moved", f"{status} Moved") for status in (301, 302, 303, 307, 308)},
        "/private": redirect("http://127.0.0.2:9/"),
        "/odd": redirect("http://a@b c/"),
    }
    async with serving(answers) as found:
        yield found


def granted(server: Server, *rules: EgressRule) -> list[EgressRule]:
    return [EgressRule(server.origin, "allow", allow_private=True), *rules]


@asynccontextmanager
async def port_of(rules: Any, **options: Any) -> AsyncIterator[Gloveport]:
    async with Gloveport(rules=rules, spare=0, **options) as port:
        yield port


SCRIPT = """
const base = input;
const a = await fetch(base + "/json", { headers: { "X-Own": "yes" } });
const of = async (path: string, init?: any) => await fetch(base + path, init);
const out: any = { json: await a.json(), status: [a.status, a.ok, a.url === base + "/json", a.headers.get("x-two")] };
out.bytes = (await (await of("/bin")).bytes()).length + (await (await of("/bin")).arrayBuffer()).byteLength;
out.gzip = (await (await of("/gzip")).text()).length;
out.missing = [(await of("/missing")).status, (await of("/missing")).ok, (await of("/empty")).status];
out.moved = [];
for (const status of [301, 302, 303, 307, 308]) {
  const found = await of(`/${status}`, { method: "POST", body: new Uint8Array([255, 0, 1]), headers: { "content-type": "x/y" } });
  out.moved.push(found.redirected && found.url.endsWith("/json?moved"));
}
out.manual = (await of("/302", { redirect: "manual" })).status;
out.failed = [];
for (const init of [["/302", { redirect: "error" }], ["/loop"], ["/private"]] as any) {
  await of(init[0], init[1]).catch((error: any) => out.failed.push(error.code ?? error.name));
}
return out;
"""

PYTHON = """
base = input
a = await fetch(base + "/json", headers={"X-Own": "yes"})
async def of(path, **options):
    return await fetch(base + path, **options)
out = {"json": a.json(), "status": [a.status, a.ok, a.url == base + "/json", a.headers["x-two"]]}
out["bytes"] = len((await of("/bin")).body) * 2
out["gzip"] = len((await of("/gzip")).text())
out["missing"] = [(await of("/missing")).status, (await of("/missing")).ok, (await of("/empty")).status]
out["moved"] = []
for status in (301, 302, 303, 307, 308):
    found = await of("/" + str(status), method="POST", body=b"\\xff\\x00\\x01", headers={"content-type": "x/y"})
    out["moved"].append(found.redirected and found.url.endswith("/json?moved"))
out["manual"] = (await of("/302", redirect="manual")).status
out["failed"] = []
for path, options in (("/302", {"redirect": "error"}), ("/loop", {}), ("/private", {})):
    try:
        await of(path, **options)
    except ToolError as error:
        out["failed"].append(error.code)
    except ValueError:
        out["failed"].append("TypeError")
out
"""


def program(engine: Engine) -> str:
    return SCRIPT if engine.language == "typescript" else PYTHON


@every_engine
async def test_fetch_looks_like_the_platforms_own(engine: Engine, server: Server) -> None:
    server.requests.clear()
    async with port_of(granted(server)) as port:
        outcome = await port.run(program(engine), language=engine.language, engine=engine.name, input=server.origin)
    assert outcome.error is None, outcome.error
    assert outcome.value == {
        "json": {"a": [1, "é"]},
        "status": [200, True, True, "1, 2"],
        "bytes": 2048,
        "gzip": 6000,
        "missing": [404, False, 204],
        "moved": [True] * 5,
        "manual": 302,
        "failed": ["TypeError", "TypeError", "denied"],
    }
    sent = [request.split(b" ")[0] for request in server.requests if b"/json?moved" in request]
    assert sent == [b"GET", b"GET", b"GET", b"POST", b"POST"]
    kept = [request for request in server.requests if request.startswith(b"POST /json?moved")]
    assert all(request.endswith(b"\r\n\r\n\xff\x00\x01") and b"content-type: x/y" in request for request in kept)
    assert b"x-own: yes\r\n" in server.requests[0]
    written = [call.tool for call in outcome.calls if call.args["method"] == "POST"]
    assert written == ["egress.write"] * 7


async def lookup(host: str, port: int) -> Sequence[str]:
    """Resolve as the system does, except the one public name among the spellings."""
    if host == "example.com":
        raise socket.gaierror
    return await connect.resolve(host, port)


SPELLINGS = [f"http://{host}/" for host in (*FORBIDDEN, *OTHERS, *UNREADABLE)]


@every_engine
async def test_no_spelling_of_a_forbidden_address_passes(engine: Engine) -> None:
    assert len(set(SPELLINGS)) > 400
    script = """
    const passed: any[] = [];
    for (const url of input) await fetch(url).then(() => passed.push(url), (error: any) => error.code === "source-unreachable" && passed.push(error.message));
    return passed;
    """
    python = """
passed = []
for url in input:
    try:
        await fetch(url)
        passed.append(url)
    except ToolError as error:
        if error.code not in ("denied", "egress-denied"):
            passed.append(error.message)
return passed
"""
    dialled = Dialled()
    async with port_of("open") as port:
        port._governance.client._egress = Egress(resolve=lookup, connect_address=dialled)
        code = script if engine.language == "typescript" else python
        outcome = await port.run(code, language=engine.language, engine=engine.name, input=SPELLINGS)
    assert outcome.error is None, outcome.error
    assert dialled.addresses == []
    # A platform's parser reads some odd spellings as a path at example.com, or refuses them first.
    assert set(outcome.value) <= ({"the host example.com can't be found"} if engine.name == "deno" else set())
    assert len(outcome.calls) > (400 if engine.name == "deno" else len(SPELLINGS) - 1)
    assert {call.status for call in outcome.calls} == {"failed"}


async def test_urllib_is_the_same_requests(server: Server) -> None:
    code = """
import json, ssl, urllib.error, urllib.request
found = []
with urllib.request.urlopen(input + "/json", timeout=5) as reply:
    found.append([reply.status, reply.getheader("X-Two"), json.load(reply)])
request = urllib.request.Request(input + "/303", data=b"a=1", headers={"X-Own": "b"})
found.append(urllib.request.urlopen(request).url.endswith("/json?moved"))
unchecked = ssl.create_default_context()
unchecked.check_hostname = False
for url, options in ((input + "/missing", {}), ("https://example.com/", {}), ("https://example.com/", {"context": unchecked})):
    try:
        urllib.request.urlopen(url, **options)
    except urllib.error.HTTPError as error:
        found.append([error.code, error.read()])
    except urllib.error.URLError as error:
        found.append([error.code, isinstance(error, ToolError)])
    except ToolError as error:
        found.append(error.message)
found
"""
    async with port_of(granted(server)) as port:
        outcome = await port.run(code, language="python", input=server.origin)
    assert outcome.error is None, outcome.error
    page, moved, missing, denied, unchecked = outcome.value
    assert (page, moved, missing) == ([200, "1, 2", {"a": [1, "é"]}], True, [404, b"nope"])
    assert denied == ["denied", True]
    assert unchecked.startswith("disabled TLS checks are refused")


async def test_a_redirect_to_another_origin_takes_no_credential_along(server: Server) -> None:
    async with serving({"/go": redirect(f"{server.origin}/json")}) as other:
        rules = [*granted(server), EgressRule(other.origin, "allow", allow_private=True)]
        server.requests.clear()
        code = 'await fetch(input, {headers: {Authorization: "Bearer x", Cookie: "a=b", "X-Own": "1"}}); return 1'
        async with port_of(rules) as port:
            for engine in ("deno", "quickjs"):
                assert (await port.run(code, engine=engine, input=f"{other.origin}/go")).value == 1
            python = 'await fetch(input, headers={"Authorization": "Bearer x", "Cookie": "a=b", "X-Own": "1"})'
            for engine in ("cpython", "monty"):
                done = await port.run(
                    f"({python}).status",
                    language="python",
                    engine=engine,
                    input=f"{other.origin}/go",
                )
                assert done.value == 200
    assert all(b"authorization: Bearer x" in request for request in other.requests)
    assert len(server.requests) == 4
    assert not any(b"bearer" in request.lower() or b"cookie" in request.lower() for request in server.requests)
    assert all(b"x-own: 1" in request for request in server.requests)


async def test_no_cookie_is_kept(server: Server) -> None:
    server.requests.clear()
    async with port_of(granted(server)) as port:
        await port.run('await fetch(input + "/cookie"); await fetch(input + "/json")', input=server.origin)
    assert len(server.requests) == 2
    assert not any(b"\r\ncookie:" in request.lower() for request in server.requests)


async def test_a_request_that_asks_shows_everything_and_is_made_only_then(server: Server) -> None:
    asked: list[ApprovalRequest] = []

    def answer(request: ApprovalRequest) -> Answer:
        assert not server.requests
        asked.append(request)
        return Answer(len(asked) == 1, "ada")

    server.requests.clear()
    rules = [EgressRule(server.origin, "ask", allow_private=True, reason="look first")]
    code = """
    const send = async () => (await fetch(input + "/json", {method: "POST", body: "text ☃", headers: {"X-Own": "b"}})).status;
    return [await send(), await send().catch((error) => error.code)];
    """
    async with port_of(rules, on_approval=answer) as port:
        outcome = await port.run(code, input=server.origin)
        server.requests.clear()
    assert outcome.value == [200, "denied"]
    assert asked[0].tool == "egress.write"
    assert asked[0].args == {
        "method": "POST",
        "url": f"{server.origin}/json",
        "headers": {"content-type": "text/plain;charset=UTF-8", "x-own": "b"},
        "body": "text ☃",
    }
    assert asked[0].reason == "look first"


async def test_always_is_for_this_origin_and_method(server: Server) -> None:
    asked: list[str] = []

    def answer(request: ApprovalRequest) -> Answer:
        asked.append(f"{request.args['method']} {request.args['url']}")
        return Answer(True, "ada", "always")

    async with serving(ok()) as other:
        rules = [EgressRule(each.origin, "ask", allow_private=True) for each in (server, other)]
        code = "for (const url of input) for (const method of ['POST', 'PUT']) await fetch(url, {method}); return 1"
        async with port_of(rules, on_approval=answer) as port:
            urls = [f"{server.origin}/json", f"{server.origin}/bin", f"{other.origin}/"]
            assert (await port.run(code, input=urls)).value == 1
    assert asked == [
        *(f"{method} {server.origin}/json" for method in ("POST", "PUT")),
        *(f"{method} {other.origin}/" for method in ("POST", "PUT")),
    ]


async def test_every_decision_is_in_the_audit_and_a_run_replays(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    code = """
    const found = await fetch(input + "/302", {method: "POST", body: "x"});
    const denied = await fetch("https://example.com").catch((error) => error.code);
    const aborted = await fetch(input + "/json", {signal: AbortSignal.abort("stop")}).catch((reason) => reason);
    return [await found.text(), denied, aborted];
    """
    async with port_of(granted(server), store=store) as port:
        outcome = await port.run(code, input=server.origin)
        assert outcome.value == ['{"a": [1, "é"]}', "denied", "stop"]
        assert await port.replay(outcome.run) is None
        recording = await port.recording(outcome.run)
    assert sum(sender == "write" for sender, _ in recording.steps) == 1  # on disk before it left, and never sent twice
    events = [json.loads(row) for row in audit_rows(store)]
    text = json.dumps(events)
    assert "egress.write" in text and "egress.read" in text and "https://example.com" in text and '"denied' in text


def audit_rows(store: Path) -> list[str]:
    with sqlite3.connect(store) as database:
        tables = [row[0] for row in database.execute("select name from sqlite_master where type = 'table'")]
        rows = [row for table in tables if "event" in table for row in database.execute(f"select * from {table}")]
    return [json.dumps([str(value) for value in row]) for row in rows]


async def test_private_addresses_need_a_grant_and_the_person_reads_which(server: Server) -> None:
    async with port_of(Rules(preset="open")) as port:
        outcome: Outcome = await port.run("await fetch(input)", input=server.origin)
    assert outcome.error is not None
    assert outcome.error.code == "egress-denied"
    assert "may not be reached: loopback" in outcome.error.message
    assert outcome.error.hint == "ask the user whether fetch may reach this address"
    assert f'allow = "{server.origin}" and allow_private = true' in (outcome.error.setting or "")


@pytest.mark.parametrize(
    ("engine", "code", "says"),
    [
        ("deno", "new WebSocket('ws://example.com')", "WebSockets and event streams are refused"),
        ("quickjs", "new WebSocket('ws://example.com')", "WebSockets and event streams are refused"),
        ("deno", "import http from 'node:http'", "use `fetch`"),
        ("deno", "import net from 'net'", "raw sockets, WebSockets and custom DNS are refused"),
        ("deno", "await fetch('https://a.com', {client: {}} as any)", "client is refused: custom DNS, proxies and TLS checks"),
        ("quickjs", "await fetch('https://a.com', {client: {}} as any)", "client is refused: custom DNS, proxies and TLS"),
        ("deno", "await fetch('https://a.com', {dispatcher: {}} as any)", "dispatcher is refused: custom DNS, proxies and TLS"),
        ("cpython", "import requests", "use `(await fetch(url)).text()` or `urllib.request`"),
        ("cpython", "import httpx", "use `(await fetch(url)).text()` or `urllib.request`"),
        ("cpython", "import websockets", "hint: WebSockets and raw sockets are refused"),
        ("cpython", "import socket\nsocket.create_connection(('127.0.0.1', 9))", "raw sockets are refused"),
    ],
)  # fmt: skip
async def test_other_ways_to_a_network_are_refused_by_name(port: Gloveport, engine: str, code: str, says: str) -> None:
    language = "python" if engine == "cpython" else "typescript"
    outcome = await port.run(code, language=language, engine=engine)
    assert outcome.error is not None
    assert says in f"{outcome.error.message}, hint: {outcome.error.hint}"
    assert "approve" not in str(outcome.error.hint)  # a package that opens sockets would not work


@every_engine
async def test_a_plan_holds_a_post_back_and_makes_its_reply_up(engine: Engine, server: Server, tmp_path: Path) -> None:
    server.requests.clear()
    script = "const r = await fetch(input, {method: 'POST', body: 'x'}); return [r.ok, await r.text()]"
    python = "r = await fetch(input, method='POST', body='x')\n[r.ok, r.text()]"
    code = script if engine.language == "typescript" else python
    async with port_of(granted(server), store=tmp_path / "store.sqlite") as port:
        outcome = await port.run(
            code, language=engine.language, engine=engine.name, input=f"{server.origin}/json", mode="plan"
        )
    assert outcome.error is None, outcome.error
    assert outcome.value == [True, "made-up-1-body"]
    assert (server.requests, [call.status for call in outcome.calls]) == ([], ["planned"])


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("typescript", "const r = await fetch('https://a.com'); r.staus"),
        ("python", "r = await fetch('https://a.com')\nr.staus"),
    ],
)
async def test_the_type_checkers_know_fetch(language: Any, code: str) -> None:
    async with port_of([], check_types=True) as port:
        outcome = await port.run(code, language=language)
    found = [*outcome.warnings, str(outcome.error)]
    assert any("staus" in text for text in found), found
