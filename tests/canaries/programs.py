"""The calls that are made through every surface, and the programs that make them and tell all they got."""

from __future__ import annotations

from typing import Any

from tests.canaries.services import MANNERS, WAYS

PROVIDED_SOURCES = ("stored", "ring", "commanded", "account")
_SLOW = ("broken", "slow")

CALLS: list[tuple[str, dict[str, Any]]] = [
    *((f"api.{manner}.{way}", {}) for way in WAYS for manner in (*MANNERS, "write") if manner not in _SLOW),
    ("api.echo.header", {"unknown": 1}),
    *((f"undeclared.{manner}.plain", {}) for manner in ("echo", "fail", "write")),
    *((f"{source}.{manner}.plain", {}) for source in PROVIDED_SOURCES for manner in ("echo", "fail", "away")),
    *((f"graph.{field}", {}) for field in ("echo", "fail", "boom", "write")),
    ("graph.echo", {"select": "no { such }"}),
    *((f"{server}.{tool}", {"n": 1}) for server in ("remote", "stdio") for tool in ("echo", "fail", "refuse")),
    ("remote.die", {"n": 1}),
    ("stdio.echo", {"n": "no number"}),
    ("host.query", {}),
    ("host.double", {"number": "two"}),
    *((f"{source}.anything", {}) for source in ("in_user", "in_query", "mcp_user", "mcp_query", "untrusted")),
    ("from_query.echo.plain", {}),
    ("mcp_keyed.echo", {"n": 1}),
]

SLOW_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("api.broken.bearer", {}),  # it is tried three times
    ("stdio.die", {"n": 1}),  # a server that has died is started again after a pause
]

# A program waits for the sources that its text names, be it in a comment.
_NAMED = " ".join(sorted({path.partition(".")[0] for path, _ in (*CALLS, *SLOW_CALLS)}))

TYPESCRIPT = (
    f"// {_NAMED}"
    + """
const found = [];
for (const [path, args] of input) {
  let tool = tools;
  for (const part of path.split(".")) tool = tool[part];
  try {
    found.push([path, await tool(args)]);
  } catch (error) {
    console.error(path, error, error.stack);
    found.push([path, error.code, error.message, error.data, String(error), Object.entries(error)]);
  }
}
found.push(await tools.search("echo"), await tools.describe("stdio.echo"), await tools.sources(), process.env);
console.log(found);
emit(found);
return found;
"""
)

PYTHON = (
    f"# {_NAMED}"
    + """
found = []
for path, args in input:
    tool = tools
    for part in path.split("."):
        tool = getattr(tool, part)
    try:
        found.append([path, await tool(args)])
    except Exception as error:
        print(path, repr(error), error)
        found.append([path, str(error), repr(error)])
found.append(await tools.search("echo"))
print(found)
found
"""
)

ENDINGS = (
    "return await tools.api.fail.bearer()",
    "return await tools.api.away.bearer()",
    "return await tools.api.write.header()",
    "return await tools.graph.fail()",
    "return await tools.host.query({})",
    "return await tools.mcp_user.anything()",
    "return await tools.api.echo.header({unknown: 1})",
    "while (true) await tools.api.echo.basic()",
    "syntax error",
    "return await tools.stdio.die({n: 1})",
)
"""Programs that fail with what a call brought them."""
