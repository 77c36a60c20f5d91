"""A control: a new Deno per program with every permission. The tools are functions beside the program."""

import asyncio
import contextlib
import json
import tempfile
from typing import Any

from deno import find_deno_bin

TOOLS = """
const tools = {
  add: async ({ a, b }: any) => a + b,
  double: async ({ n }: any) => 2 * n,
  label: async ({ n }: any) => `number ${n}`,
};
"""


class PlainDeno:
    """One process per program."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._under_way: set[asyncio.subprocess.Process] = set()

    async def start(self) -> None:
        """Do nothing: no process is started in advance."""

    async def run(self, code: str) -> Any:
        """Run the program and return its value."""
        with tempfile.NamedTemporaryFile("w", suffix=".ts") as file:
            file.write(f"{TOOLS}const value = await (async () => {{\n{code}\n}})();\nconsole.log(JSON.stringify(value));\n")
            file.write("Deno.exit();\n")
            file.flush()
            process = await asyncio.create_subprocess_exec(
                find_deno_bin(),
                *("run", "--allow-all", "--no-check", "--no-config", "--no-lock", file.name),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            self._under_way.add(process)
            out, _ = await process.communicate()
            self._under_way.discard(process)
        if process.returncode:
            raise RuntimeError(f"Deno ended with {process.returncode}")
        return json.loads(out)

    async def close(self) -> None:
        """Stop the remaining processes."""
        for process in self._under_way:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


make = PlainDeno
