"""OpenTelemetry spans of runs and calls, with the real SDK, and the parents that callers name."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry import trace

from gloveport import Gloveport, Rule, Rules
from gloveport.config import SourceConfig
from gloveport.host.runs.traces import RunTraces
from gloveport.policy.credentials import Secret
from gloveport.policy.egress import TRACE_PARENT
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import TokenCheck
from tests.policy.servers import serving
from tests.sources.mcp.support import RAW
from tests.surfaces.agents import AUTHORIZATION, TOKEN, url_of

pytestmark = pytest.mark.integration

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def half(n: int) -> float:
    """Return the half of an even number."""
    if n % 2:
        raise ValueError("the-secret-of-the-tool")
    return n / 2


@pytest.fixture(scope="module")
async def traced() -> AsyncIterator[tuple[httpx2.AsyncClient, Any]]:
    """Yield a client of a server with traces, and the exporter that gets them."""
    sdk, export = (importlib.import_module(f"opentelemetry.sdk.trace{part}") for part in ("", ".export"))
    exporter = importlib.import_module("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    port = Gloveport(tools=[half], spare=1)
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), None, port.agent)
    server = HttpServer(port, ServerNames(), check, Admission(), 30, traces=True)
    serving = asyncio.create_task(server.serve(listening))
    async with httpx2.AsyncClient(base_url=url_of(listening), headers=AUTHORIZATION, timeout=60, trust_env=False) as client:
        yield client, exporter
    server.stop()
    server.stop()
    await serving
    provider.shutdown()


async def spans_of(traced: tuple[httpx2.AsyncClient, Any], code: str, **headers: str) -> tuple[Any, list[Any]]:
    """Run a program, and return the spans of the run and of its calls."""
    client, exporter = traced
    exporter.clear()
    reply = await client.post("/v1/runs", json={"code": code}, headers=headers)
    assert reply.status_code == 200
    spans = [span for span in exporter.get_finished_spans() if span.name.startswith("gloveport.")]
    (run,) = (span for span in spans if span.name == "gloveport.run")
    assert run.attributes["gloveport.run.id"] == reply.json()["run"]
    return run, [span for span in spans if span.name == "gloveport.call"]


async def test_a_run_is_a_span_below_its_caller_and_its_calls_are_below_it(traced: Any) -> None:
    code = "await tools.half({n: 2}); await tools.half({n: 3}).catch(() => 0)"
    run, calls = await spans_of(traced, code, traceparent=f"00-{TRACE}-{PARENT}-01")
    assert (f"{run.context.trace_id:032x}", f"{run.parent.span_id:016x}") == (TRACE, PARENT)
    assert (run.attributes["gloveport.status"], run.attributes["gloveport.engine"]) == ("completed", "deno")
    assert {call.parent.span_id for call in calls} == {run.context.span_id}
    assert [(call.attributes["gloveport.tool"], call.attributes["gloveport.status"]) for call in calls] == [
        ("half", "ok"),
        ("half", "failed"),
    ]
    for call in calls:
        assert run.start_time <= call.start_time <= call.end_time <= run.end_time


@pytest.mark.parametrize("place", ["header", "meta"])
async def test_a_request_of_mcp_names_the_parent_in_a_header_or_in_its_meta(traced: Any, place: str) -> None:
    client, exporter = traced
    exporter.clear()
    parent = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    about = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "c", "version": "1"}, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
    params = {"name": "execute", "arguments": {"code": "1"}, "_meta": meta | (parent if place == "meta" else {})}
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "execute"}
    headers |= {"Accept": "application/json, text/event-stream"} | (parent if place == "header" else {})
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    assert (await client.post("/mcp", json=message, headers=headers)).status_code == 200
    (run,) = (span for span in exporter.get_finished_spans() if span.name == "gloveport.run")
    assert f"{run.context.trace_id:032x}" == TRACE


@pytest.mark.parametrize("given", [{}, {"traceparent": "00-zz-1-01"}, {"traceparent": "x" * 4000}])
async def test_a_run_without_a_valid_parent_begins_a_trace(traced: Any, given: dict[str, str]) -> None:
    run, calls = await spans_of(traced, "1", **given)
    assert (run.parent, calls) == (None, [])


async def test_spans_hold_nothing_that_a_program_or_a_tool_wrote(traced: Any) -> None:
    code = "console.log('log-text'); const e = new Error('error-text'); await tools.half({n: 987654321}).catch(() => 0);"
    run, calls = await spans_of(traced, f"{code} e.code = 'code-text'; throw e")
    assert (run.attributes["error.type"], run.status.status_code.name) == ("program-failed", "ERROR")
    written = "".join(span.to_json() for span in (run, *calls))
    assert not [text for text in ("-text", "the-secret", "987654321", "Error(") if text in written]


async def test_requests_to_sources_name_the_run_as_their_parent(traced: Any, tmp_path: Path) -> None:
    _, exporter = traced
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Type: application/json\r\n\r\n1") as server:
        operation = {"operationId": "ping", "responses": {"200": {"description": "d", "content": {"application/json": {}}}}}
        document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {"/ping": {"get": operation}}}
        definition = tmp_path / "web.json"
        await asyncio.to_thread(definition.write_text, json.dumps(document))
        sources = [
            SourceConfig("web", "openapi", str(definition), allow_private=True, base_url=server.origin),
            SourceConfig("its", "mcp", (*RAW, "meta"), writes=("*",)),
        ]
        code = "await tools.web.ping(); return await tools.its.echo({})"
        async with Gloveport(sources=sources, rules=Rules([Rule("*", "allow")])) as port:
            assert (await port.run(code)).ok  # before anybody wants traces
            port.observers.add(RunTraces())
            exporter.clear()
            outcomes = await asyncio.gather(*(port.run(code) for _ in range(3)))
    spans = {span.context.span_id: span for span in exporter.get_finished_spans()}
    runs = {span.attributes["gloveport.run.id"]: span.context for span in spans.values() if span.name == "gloveport.run"}
    for one in outcomes:  # the MCP library makes a span of its own below that of the run
        _, trace_id, parent, _ = one.value["traceparent"].split("-")
        assert (int(trace_id, 16), spans[int(parent, 16)].parent.span_id) == (runs[one.run].trace_id, runs[one.run].span_id)
    sent = [re.findall(rb"\r\ntraceparent: (\S+)", request, re.IGNORECASE) for request in server.requests]
    assert sent[0] == []
    named = {(int(header.split(b"-")[1], 16), int(header.split(b"-")[2], 16)) for (header,) in sent[1:]}
    assert named == {(about.trace_id, about.span_id) for about in runs.values()}
    assert TRACE_PARENT.get() is None


def test_without_traces_nothing_of_ours_is_loaded_for_them() -> None:
    code = "import gloveport, sys; gloveport.Gloveport(); print([n for n in sys.modules if 'opentelemetry' in n])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.strip() == "[]"
