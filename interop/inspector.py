"""`make inspector` runs the MCP Inspector's command line against `gloveport mcp` and `gloveport serve`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from interop.node import NODE, environment, installed

TOOLS = str(Path(__file__).parents[1] / "examples" / "demo_tools.py")
COMMAND = [sys.executable, "-m", "gloveport.surfaces.cli.main"]
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
    call = ("--method", "tools/call", "--tool-name")
    found = inspect(target, env, *call, "search", "--tool-arg", "query=open orders")
    ran = inspect(target, env, *call, "execute", "--tool-arg", f"code={CODE}")
    path, value = found["structuredContent"]["tools"][0]["path"], ran["structuredContent"]["value"]
    if (names, path, value) != (["search", "describe", "execute"], "demo_tools.list_orders", 3):
        sys.exit(f"{name}: unexpected {names}, {path}, {value}")
    print(f"{name}: lists {', '.join(names)}; finds {path}; execute gives {value}")


def main() -> None:
    """Check both transports."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment() | dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME"), folder)
        path = ["-e", f"PYTHONPATH={env['PYTHONPATH']}"] if "PYTHONPATH" in env else []  # it passes no other variable on
        check("stdio", [*path, *COMMAND, "mcp", TOOLS], env)
        command = [*COMMAND, "serve", TOOLS, "--port", "0", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as server:
            try:
                assert server.stdout
                about = json.loads(server.stdout.readline())
                token = Path(about["token_file"]).read_text().strip()
                check("http", [about["mcp"], "--header", f"Authorization: Bearer {token}"], env)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
