"""`make inspector` runs the MCP Inspector's command line against `gloveport mcp` and `gloveport serve`.

Over both, one call asks: another process approves it, and `resume` gives the result. Over stdio each Inspector starts a
host of its own, so the host that resumes the run is not the one that asked.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gloveport.surfaces.agents.tool_descriptions import INPUT_SCHEMAS
from interop.node import NODE, environment, installed

TOOLS = str(Path(__file__).parents[1] / "examples" / "demo_tools.py")
COMMAND = [sys.executable, "-m", "gloveport.surfaces.cli.main"]
CALL = ("--method", "tools/call", "--tool-name")
BANK = """
from gloveport import tool


@tool(writes=True)
def pay(amount: int, to: str) -> str:
    'Pay somebody.'
    return f"paid {amount} to {to}"
"""
PAY = "return await tools.bank.pay({amount: 5, to: 'ada'})"
CODE = "(await tools.demo_tools.list_orders({customer: 'ada'})).length"


def inspect(target: list[str], env: dict[str, str], *asked: str) -> Any:
    """Run the Inspector on a server and return its JSON output."""
    command = [NODE, installed() / "mcp-inspector", "--cli", *target, *asked]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        sys.exit(f"the Inspector failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def check(name: str, target: list[str], env: dict[str, str]) -> None:
    """List the tools, search for one, and run a program."""
    listed = inspect(target, env, "--method", "tools/list")
    names = [tool["name"] for tool in listed["tools"]]
    found = inspect(target, env, *CALL, "search", "--tool-arg", "query=open orders")
    ran = inspect(target, env, *CALL, "execute", "--tool-arg", f"code={CODE}")
    path, value = found["structuredContent"]["tools"][0]["path"], ran["structuredContent"]["value"]
    if (names, path, value) != (list(INPUT_SCHEMAS), "demo_tools.list_orders", 3):
        sys.exit(f"{name}: unexpected {names}, {path}, {value}")
    print(f"{name}: lists {', '.join(names)}; finds {path}; execute gives {value}")


def check_approval(name: str, target: list[str], env: dict[str, str]) -> None:
    """Run a program that asks, resume it in vain, approve its call in another process, and get its result."""
    asked = inspect(target, env, *CALL, "execute", "--tool-arg", f"code={PAY}")["structuredContent"]
    resume = (*CALL, "resume", "--tool-arg", f"run={asked['run']}")
    again = inspect(target, env, *resume)["structuredContent"]
    approvals = [*COMMAND, "approvals"]
    listed = subprocess.run([*approvals, "list", "--json"], env=env, capture_output=True, check=True).stdout
    (request,) = json.loads(listed)["waiting"]
    controller, terminal = pty.openpty()  # without a terminal, an answer needs the token of an approver
    answer = [*approvals, "approve", request["id"], "--yes"]
    refused = subprocess.run(answer, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
    subprocess.run(answer, env=env, stdin=terminal, capture_output=True, check=True, timeout=60)
    os.close(controller)
    os.close(terminal)
    done = inspect(target, env, *resume)["structuredContent"]
    steps = [asked["status"], again["status"], request["tool"], refused, done["status"], done.get("value")]
    if steps != ["waiting", "waiting", "bank.pay", 5, "completed", "paid 5 to ada"]:
        sys.exit(f"{name}: an approval went {steps}")
    print(f"{name}: execute is {asked['status']} for {request['tool']}; after the approval, resume gives {done['value']!r}")


def main() -> None:
    """Check both transports."""
    with tempfile.TemporaryDirectory() as folder:
        env = {name: value for name, value in environment().items() if not name.startswith("XDG_")} | {"HOME": folder}
        path = ["-e", f"PYTHONPATH={env['PYTHONPATH']}"] if "PYTHONPATH" in env else []  # it passes few other variables on
        bank = Path(folder) / "bank.py"
        bank.write_text(BANK)
        target = [*path, *COMMAND, "mcp", TOOLS, str(bank)]
        check("stdio", target, env)
        check_approval("stdio", target, env)
        command = [*COMMAND, "serve", TOOLS, str(bank), "--port", "0", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as server:
            try:
                assert server.stdout
                about = json.loads(server.stdout.readline())
                token = Path(about["token_file"]).read_text().strip()
                target = [about["mcp"], "--header", f"Authorization: Bearer {token}"]
                check("http", target, env)
                check_approval("http", target, env)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
