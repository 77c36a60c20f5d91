"""Our own client in a scenario of the client suite: `python -m interop.our_client URL`.

A program calls every tool of the server, as an agent's program would. For elicitation the source is called directly:
no surface supports it yet. When a run needs a sign-in, the user runs the command that it names, and the program again.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gloveport import Gloveport
from gloveport.config import SourceConfig
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress
from gloveport.sources.context import SourceContext
from gloveport.sources.mcp.elicitation import ElicitationAnswer, ElicitationQuestion
from gloveport.sources.mcp.opening import open_mcp
from gloveport.types import Tool
from interop.our_account import MAX_SIGN_INS, named_command, sign_in, write_settings
from interop.scenarios import arguments, asks, filled_in

OFFERED = {"resources": ("read", "uri"), "prompts": ("get", "name")}
PROGRAM = """
const attempt = (call) => call.catch((error) => console.error(String(error)));
await Promise.all(input.calls.map(([name, args]) => attempt(tools.server[name](args))));
for (const [kind, [verb, key]] of input.offered) {
  const source = tools.server[kind];
  for (const found of await attempt(source.list()) ?? []) await attempt(source[verb]({ [key]: found[key] }));
}
"""


async def run(config: SourceConfig) -> list[str]:
    """Run a program that calls every tool; return the words of the command that signs in, if it is needed."""
    port = Gloveport(sources=[config], spare=0)
    try:
        await port.connect()
        print(*port.problems, sep="\n", file=sys.stderr)
        if not port.catalog.tools:
            return named_command(str([problem.hint for problem in port.problems]))
        offered = [item for item in OFFERED.items() if f"server.{item[0]}.list" in {t.address for t in port.catalog.tools}]
        outcome = await port.run(PROGRAM, input={"calls": calls(port.catalog.tools), "offered": offered})
        print(outcome.error, *outcome.logs, sep="\n", file=sys.stderr)
        return named_command(str([call.setting for call in outcome.calls]))
    finally:
        await port.close()


async def run_signed_in(config: SourceConfig, url: str) -> None:
    """Run the program, and again after each sign-in that it needs."""
    write_settings(url)
    for _ in range(MAX_SIGN_INS):
        command = await run(config)
        if not command or not await sign_in(command, url):
            return
    await run(config)


async def answer(question: ElicitationQuestion) -> ElicitationAnswer:
    """Accept every elicitation."""
    return ElicitationAnswer("accept", filled_in(question.schema or {}))


async def ask(config: SourceConfig) -> None:
    """Call every tool, with a user who accepts elicitations."""
    egress = Egress()
    outside = SourceContext(egress, EnvironmentCredentials({}), Path(), DefinitionTasks("kernel"))
    source = await open_mcp(config, outside, on_elicit=answer)
    try:
        found = {tool.address: tool for tool in source.tools()}
        made = [source.call(found[f"server.{name}"], args) for name, args in calls(source.tools())]
        print(*await asyncio.gather(*made, return_exceptions=True), sep="\n", file=sys.stderr)
    finally:
        await source.close()
        await egress.close()


def calls(tools: Sequence[Tool]) -> list[tuple[str, dict[str, Any]]]:
    """Return the tools of the server by their names here, with arguments.

    Gloveport refuses null for what a schema says is a boolean, so a program leaves it out.
    """
    schemas = {tool.address.partition(".")[2]: tool.input_schema for tool in tools}
    names = [name for name in schemas if name.partition(".")[0] not in OFFERED]
    given = {name: arguments(name, schemas).items() for name in names}
    return [(name, {key: value for key, value in given[name] if value is not None}) for name in names]


if __name__ == "__main__":
    server = SourceConfig("server", "mcp", sys.argv[1], allow_private=True, writes=("*",))
    authorizes = os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/")
    asyncio.run(ask(server) if asks else run_signed_in(server, sys.argv[1]) if authorizes else run(server))
