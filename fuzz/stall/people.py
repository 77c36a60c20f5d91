"""Requests to the API as the pages make them, at a server with a store, by a caller in the role `admin`.

They run programs, and read and change what the server has recorded. Their texts are as hostile as those of agents.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fuzz.stall.entrance import MIB, Document, Entrance, Take, use_empty_folders
from fuzz.stall.http_server import served
from fuzz.stall.programs import MARKS, TOOLS
from fuzz.stall.recipe import PUNCTUATION, Recipe, many, nest, times
from fuzz.stall.requests import send_away, sender
from gloveport import Gloveport

SETTINGS = """
[sources.shop]
openapi = "shop.json"
base_url = "http://127.0.0.1:9"

[[rules]]
ask = "local.send"
when = 'args.value matches "*a*a*a*a*b" and not (args.value in ["a", "b"])'

[[rules]]
deny = "*.s*e*n*d*s"
when = "len(args.value) > 100"
"""
SHOP = '{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/a":{"get":{"responses":{}}}}}'
RUN = "0" * 32
LIMITS = {"wall_seconds": 120, "cpu_seconds": 3}


@asynccontextmanager
async def opened() -> AsyncIterator[Take]:
    """Send each input to a server whose store has a run with a large result and a run that waits."""
    use_empty_folders()
    folder = Path.cwd() / "people"
    folder.mkdir(exist_ok=True)
    (folder / "gloveport.toml").write_text(SETTINGS)
    (folder / "shop.json").write_text(SHOP)
    port = Gloveport(
        tools=[*TOOLS, send_away], config=folder / "gloveport.toml", store=folder / "store.sqlite", limits=LIMITS
    )
    async with served(port, "admin") as number:
        if (await port.run("emit(1); return Array.from({length: 300000}, (_, i) => i)", id=RUN)).error is not None:
            raise RuntimeError("the first run failed")
        await port.run("return await tools.send_away({value: 'a'.repeat(100000)})")
        yield sender(number)


def _get(*path: Recipe) -> Document:
    return {"path": list(path), "method": "GET"}


def _post(path: Recipe, *body: Recipe) -> Document:
    return {"path": path, "body": ["{", *body, "}"]}


def _run(code: str, *more: Recipe) -> Document:
    return _post("/v1/runs", f'"code":"{code}"', *more)


def _complete(*code: Recipe, offset: str = "9999999", language: str = "typescript") -> Document:
    return _post("/v1/complete", '"code":"', *code, f'","offset":{offset},"language":"{language}"')


def _explain(tool: Recipe, *args: Recipe) -> Document:
    return _post("/v1/policies/explain", '"tool":"', tool, '","args":{', *args, "}")


def _rule(pattern: Recipe, *more: Recipe) -> Document:
    return _post("/v1/policies", '"verdict":"deny","pattern":"', pattern, '"', *more)


def _add(what: Recipe, *more: Recipe) -> Document:
    return _post("/v1/sources", '"what":"', what, '"', *more)


def _wide(inner: str) -> str:
    return f"return Array.from({{length: 1500000}}, (_, i) => {inner})"


SEEDS: dict[str, Document] = {
    # runs with large outcomes
    "numbers": _run(_wide("1")),
    "fractions": _run(_wide("0.5")),
    "lists": _run("return Array.from({length: 90000}, () => [[]])"),
    "objects": _run("return Array.from({length: 90000}, (_, i) => ({id: i, name: 'n'}))"),
    "set": _run("return new Set(Array.from({length: 900000}, (_, i) => i))"),
    "map": _run("return new Map(Array.from({length: 49000}, (_, i) => [i, i]))"),
    "dates": _run("return Array.from({length: 90000}, (_, i) => new Date(i))"),
    "bytes": _run("return new Uint8Array(5000000)"),
    "text": _run("return 'x'.repeat(8000000)"),
    "surrogates": _run("return Array.from({length: 500000}, () => '\\\\ud800')"),
    "emits": _run("for (let i = 0; i < 20000; i++) emit(i)"),
    "emitted-numbers": _run("for (let j = 0; j < 3; j++) emit(Array.from({length: 1500000}, () => 1))"),
    "logs": _run("for (let i = 0; i < 20000; i++) console.log('a')"),
    "calls": _run("for (let i = 0; i < 900; i++) await tools.echo({value: Array(2000).fill(1)})"),
    "error-data": _run("throw Object.assign(new Error('a'), {data: Array(1000000).fill(1)})"),
    "plan": _run("for (let i = 0; i < 900; i++) await tools.send_away({value: Array(2000).fill(1)})", ',"mode":"plan"'),
    "large-plan": _run("await tools.send_away({value: Array(1500000).fill(1)})", ',"mode":"plan"'),
    "waiting": _run("await tools.send_away({value: 'a'.repeat(200000)})"),
    "waiting-numbers": _run("await tools.send_away({value: Array(100000).fill(1)})"),
    # runs of the past
    "run": _get(f"/v1/runs/{RUN}"),
    "run-export": _get(f"/v1/runs/{RUN}/export"),
    "run-replay": _post(f"/v1/runs/{RUN}/replay"),
    "run-events": _get(f"/v1/runs/{RUN}/events"),
    "run-rollback": _post(f"/v1/runs/{RUN}/rollback"),
    "run-apply": _post(f"/v1/runs/{RUN}/apply"),
    "run-id": _get("/v1/runs/", times(60_000, "a")),
    "runs": _get("/v1/runs?limit=500"),
    "runs-tool": _get("/v1/runs?tool=", times(90, "*a")),
    "runs-cursor": _get("/v1/runs?cursor=", times(60_000, "W1tb")),
    "runs-page": _get("/runs.json?", {"count": 5_000, "of": "a<i>=1", "join": "&"}),
    # editors
    "check": _post("/v1/check", '"code":"', times(100_000, "("), '"'),
    "check-marks": _post("/v1/check", '"code":"', times(40_000, MARKS), '","language":"python"'),
    "check-large": _post("/v1/check", '"code":"', times(3_000_000, "a;"), '"'),
    "check-names": _post("/v1/check", '"code":"', {"count": 20_000, "of": "tools.x<i>();"}, '"'),
    "complete": _complete("tools.ec"),
    "complete-chain": _complete(times(500_000, "a.")),
    "complete-tools": _complete(times(9_000, "tools."), "x"),
    "complete-brackets": _complete(times(3_000_000, "(")),
    "complete-nests": _complete("tools.echo(", nest(190, "{a:[", "b", "]}"), "{"),
    "complete-keys": _complete("tools.echo({", {"count": 3_000, "of": "a<i>:1,"}),
    "complete-strings": _complete(times(1_000_000, "'")),
    "complete-quotes": _complete(times(1_000_000, "'\\\\"), language="python"),
    "complete-escapes": _complete("'", times(1_000_000, "\\\\")),
    "complete-comments": _complete(times(1_000_000, "/*")),
    "complete-notes": _complete(times(1_000_000, "#"), language="python"),
    "complete-triple": _complete(times(1_000_000, '\\"'), language="python"),
    "complete-marks": _complete(times(1_000_000, MARKS)),
    "complete-surrogates": _complete(times(300_000, "\\ud83d\\ude00"), offset="300001"),
    "complete-blanks": _complete("tools.echo(", times(3_000_000, " ")),
    "complete-templates": _complete(times(1_000_000, "`${")),
    "examples": _get("/v1/examples"),
    # rules
    "policies": _get("/v1/policies?agent=", times(140, "*a")),
    "explain": _explain("echo", '"value":1'),
    "explain-name": _explain(times(1_000, "a.")),
    "explain-marks": _explain(times(900, "\\u0301")),
    "explain-url": _explain(["http://", times(1_900, "%61")]),
    "explain-host": _explain(["https://", times(900, "a.")]),
    "explain-keys": _explain("send_away", '"value":{', many(24_000, '"k<i>":1'), "}"),
    "explain-text": _explain("send_away", '"value":"', times(4_000_000, "a"), '"'),
    "explain-pattern": _explain("send_away", '"value":"', times(65_000, "a"), '"'),
    "explain-fetch": _explain("https://a.example/", '"body":"', times(4_000_000, "a"), '"'),
    "explain-unknown": _explain("echo", many(24_000, '"k<i>":1')),
    "explain-weather": _explain("get_weather", many(24_000, '"ctiy<i>":1')),
    "rule": _rule("echo"),
    "rule-pattern": _rule(times(140, "*a")),
    "rule-classes": _rule(times(140, "[a")),
    "rule-marks": _rule(times(290, "\\u0301")),
    "rule-when": _rule("echo", ',"when":"', times(300, "("), '"'),
    "rule-not": _rule("echo", ',"when":"', times(240, "not "), 'true"'),
    "rule-tests": _rule("echo", ',"when":"', times(120, "true or "), 'true"'),
    "rule-digits": _rule("echo", ',"when":"', times(990, "9"), '== 1"'),
    "rule-text": _rule("echo", ',"when":"\'', times(490, "\\\\"), '"'),
    "rule-reason": _rule("echo", ',"reason":"', times(1_900, "\\u0301"), '"'),
    "rule-agent": _rule("echo", ',"agent":"', times(140, "*a"), '"'),
    # sources
    "sources": _get("/v1/sources"),
    "source": _get("/v1/sources/", times(50_000, "a")),
    "add-command": _add(times(1_900, "a ")),
    "add-quotes": _add(times(1_900, "' ")),
    "add-url": _add(["http://", times(3_900, "a")]),
    "add-dots": _add(["http://", times(1_900, "a.")]),
    "add-marks": _add(["http://", times(1_900, "\\u0301")]),
    "add-path": _add(times(1_300, "../")),
    "add-file": _add("shop.json", ',"name":"other"'),
    "add-base": _add("shop.json", ',"base_url":"http://', times(1_900, "%"), '"'),
    "add-unknown": _add("shop.json", ",", many(9_000, '"k<i>":1')),
    "refresh": _post("/v1/sources/shop/refresh"),
    "remove": _post("/v1/sources/shop/remove", '"digest":"', times(190, "0"), '"'),
    "sign-in": _post("/v1/sources/shop/sign-in", '"slot":"', times(60_000, "a"), '"'),
    "clients": _get("/v1/clients?origin=", times(290, "%22")),
    # answers
    "approvals": _get("/v1/approvals"),
    "answer": _post("/v1/approvals/answer", '"approve":true,"requests":{', many(500, '"<i>":"0"'), "}"),
    "answer-args": _post(
        "/v1/approvals/answer", '"approve":true,"requests":{"0":"0"},"args":{', many(24_000, '"k<i>":1'), "}"
    ),
    "answer-value": _post(
        "/v1/approvals/answer", '"approve":true,"requests":{"0":"0"},"happened":true,"value":[', many(24_000, "1"), "]"
    ),
    "standing": _get("/v1/approvals/standing"),
    "plans": _get("/v1/plans"),
    # the record
    "audit": _get("/v1/audit?limit=500"),
    "audit-tool": _get("/v1/audit?tool=", times(95, "*a")),
    "audit-kind": _get("/v1/audit?kind=", times(20, "*-")),
    "audit-cursor": _get("/v1/audit?cursor=", times(60_000, "W1tb")),
    "verification": _get("/v1/audit/verification"),
    "agents": _get("/v1/agents"),
    "agent": _post("/v1/agents", '"name":"', times(64, "a"), '"'),
    "agent-name": _post("/v1/agents", '"name":"', times(3_000_000, "a"), '"'),
    "snippet": _post("/v1/snippets", f'"run":"{RUN}","name":"', times(60, "a"), '"'),
    "snippet-text": _post("/v1/snippets", f'"run":"{RUN}","name":"a","description":"', times(900_000, "a"), '"'),
    "changes": _get("/v1/changes"),
    "accept": _post("/v1/changes/accept", '"source":"', times(3_000_000, "a"), '"'),
    # sessions
    "file": _post("/v1/sessions/s/file?path=a.bin", '"content":"', times(900_000, "AAAA"), '"'),
    "file-text": _post("/v1/sessions/s/file?path=a.bin", '"content":"', times(3_000_000, "%"), '"'),
    "file-path": _post(["/v1/sessions/s/file?path=", times(500, "a/")], '"content":"AAAA"'),
    "file-marks": _post(["/v1/sessions/s/file?path=", times(500, "%CC%81")], '"content":"AAAA"'),
    "file-taken": _get("/v1/sessions/s/file?path=a.bin"),
    "files": _get("/v1/sessions/s/files"),
    "session-files": _run("for (let i = 0; i < 2000; i++) await files.write(`f${i}`, 'x'); return 1", ',"session":"s"'),
    "session-state": _run("state.x = Array.from({length: 500000}, (_, i) => i); return 1", ',"session":"s"'),
    "sessions": _get("/v1/sessions"),
    "session-name": _get("/v1/sessions/", times(50_000, "a"), "/files"),
    # pages
    "page": _get("/runs/", times(50_000, "a")),
    "page-view": _get("/", times(20_000, "playground/")),
    "page-cookie": {**_get("/v1/me"), "headers": ["\r\nCookie: ", times(15_000, "a=b; ")]},
    "link": {**_post("/v1/sign-in"), "headers": ["\r\nX-Gloveport: ", times(60_000, "a")]},
    "metrics": _get("/metrics"),
}
WORDS = (
    '"code":"',
    '"offset":',
    '"args":{',
    '"tool":"',
    '"pattern":"',
    '"when":"',
    "args.value",
    "matches",
    " and ",
    " or ",
    "not ",
    "tools.",
    "send_away(",
    "return ",
    "emit(",
    *PUNCTUATION,
    *("*", "?", "/*", "//", "`", "'", "\\\\", "\\u0301", "(", ")", " ", "\n", "9", "a.", "%2e", "&", "="),
)
ENTRANCE = Entrance(
    "people",
    __name__,
    opened,
    SEEDS,
    _post("/v1/check", '"code":"return await tools.echo({value: 1})"'),
    WORDS,
    4 * MIB - 4096,
)
