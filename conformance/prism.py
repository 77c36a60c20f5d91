"""`make prism` sends calls from GitHub's definition to Prism, a mock server that validates requests.

A second definition, `styles`, has every style of parameter and kind of body. Exits with 1 at any violation.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random

import orjson

from conformance.arguments import Maker, Unmade
from conformance.styles import document_for_prism
from gloveport.bridge.arguments import Contract
from gloveport.config import SourceConfig
from gloveport.errors import ToolError
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.policy.credentials import Attachment
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress, Reach, Reply, Request
from gloveport.sources.context import SourceContext
from gloveport.sources.openapi.opening import open_openapi
from gloveport.sources.openapi.source import OpenApiSource
from gloveport.types import Tool

HERE = Path(__file__).parent
GITHUB = HERE / "node_modules/@octokit/openapi/generated/api.github.com.json"
PRISM = HERE / "node_modules/.bin/prism"
BOOT_SECONDS = 180


class Witness(Egress):
    """Egress that records the requests it sends."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Request, Reply]] = []

    async def send(self, request: Request, reach: Reach, attachments: Sequence[Attachment] = ()) -> Reply:
        reply = await super().send(request, reach, attachments)
        self.seen.append((request, reply))
        return reply


class Judgement:
    """The result of many calls."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    async def judge(self, source: OpenApiSource, tool: Tool, witness: Witness, random: Random) -> None:
        """Make one valid call of a tool, and invalid ones, which must not be sent."""
        maker = Maker(tool.input_schema, random)
        contract = Contract(tool, source, tool.address)
        try:
            args = maker.well_formed()
        except Unmade:
            self.problems.append(f"{tool.address}: no arguments were found that fit it")
            return
        witness.seen.clear()
        self.counts["well-formed calls"] += 1
        try:
            await source.call(tool, contract.accept([args]))
        except ToolError as error:  # the mock may answer with an error that the definition lists
            if error.code == "egress-denied":
                self.counts["redirects to other origins not followed"] += 1
            elif error.code != "http-error":
                self.problems.append(f"{tool.address}: {error} for {args!r}")
        for request, reply in witness.seen[-1:]:
            self.counts[f"{request.method} with {'a body' if request.body else 'no body'}"] += 1
            for violation in _violations(reply):
                self.problems.append(f"{tool.address}: {violation}\n  {request.method} {request.url} {request.body!r:.300}")
        witness.seen.clear()
        for wrong in maker.malformed(args):
            if maker.refuses(wrong):
                self.counts["malformed calls stopped"] += 1
                with contextlib.suppress(ToolError):
                    await source.call(tool, contract.accept([wrong]))
                    self.problems.append(f"{tool.address}: {wrong!r} was not refused")
        if witness.seen:
            self.problems.append(f"{tool.address}: a malformed call reached the wire")


def _violations(reply: Reply) -> list[str]:
    """Return Prism's objections to a request. Prism truncates a long list, which is then not valid JSON."""
    told = reply.headers.get("sl-violations", "") or (reply.body.decode() if b"stoplight.io/prism" in reply.body else "")
    listed = re.findall(r'"location":\[[^}]*', told)
    found = [item for item in listed if '"severity":"Error"' in item and '["response"' not in item and not _undecided(item)]
    if not listed and b"stoplight.io/prism" in reply.body and reply.status in {404, 405, 415}:
        found.append(told)  # unknown path or method, or an unsupported media type
    return found


def _undecided(item: str) -> bool:
    """Return whether Prism objects to a number in a path, which it reads as a number and as a string."""
    return '["path",' in item and '"code":"oneOf"' in item


@contextlib.asynccontextmanager
async def prism(document: Path) -> AsyncIterator[str]:
    """Run Prism for a document and yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            PRISM, "mock", document, "--port", str(port), "--verboseLevel", "error", stdout=log, stderr=log
        )
        try:
            async with asyncio.timeout(BOOT_SECONDS):
                await _answers(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def _answers(port: int, process: asyncio.subprocess.Process) -> None:
    while True:
        if process.returncode is not None:
            raise SystemExit(f"Prism ended with {process.returncode} instead of serving")
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.2)
            continue
        writer.close()
        return


async def judge(document: Path, calls: int, seed: int) -> Judgement:
    """Make `calls` calls of the tools of a document, in an order given by the seed."""
    random, judgement, witness = Random(seed), Judgement(), Witness()
    async with prism(document) as url:
        with tempfile.TemporaryDirectory() as folder:
            config = SourceConfig("it", "openapi", str(document), base_url=url, allow_private=True)
            environment = dict.fromkeys([f"GLOVEPORT_IT_{slot}" for slot in ("KEY", "LOGIN", "TOKEN")], "user:secret")
            outside = SourceContext(
                witness, EnvironmentCredentials({}, environment), Path(folder), DefinitionTasks("kernel")
            )
            source = await open_openapi(config, outside)
            tools = list(source.tools())
            random.shuffle(tools)
            for index in range(calls):
                await judgement.judge(source, tools[index % len(tools)], witness, random)
            await source.close()
            await witness.close()
    return judgement


def main() -> int:
    """Print the problems and return the number of documents that have some."""
    seed = int(os.environ.get("SEED", "1"))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        styles = Path(folder) / "styles.json"
        styles.write_bytes(orjson.dumps(document_for_prism()))
        for path, calls in ((styles, 300), (GITHUB, int(os.environ.get("CALLS", "1500")))):
            failed += report(path.name, asyncio.run(judge(path, calls, seed)))
    return failed


def report(name: str, judgement: Judgement) -> bool:
    """Print a result and return whether it has problems."""
    print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in sorted(judgement.counts.items())))
    for problem in judgement.problems:
        print(f"  {problem}")
    print(f"  {len(judgement.problems)} problems")
    return bool(judgement.problems)


if __name__ == "__main__":
    sys.exit(main())
