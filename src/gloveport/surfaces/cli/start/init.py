"""`gloveport init`: writes a `gloveport.toml` with comments into the working folder."""

from __future__ import annotations

import sys
from pathlib import Path

from gloveport.config import CONFIG_FILE
from gloveport.errors import OptionError
from gloveport.surfaces.cli.file_change import FileChange, ask, read_text
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import stream

TEXT = """\
# Settings of Gloveport for this project. `gloveport add` adds sources here; docs/sources.md explains every key.

# [sources.shop]
# openapi = "https://api.example.com/openapi.json"  # or graphql = "…", mcp = ["command"], functions = "tools.py"
# writes = ["orders.*"]                             # calls that write ask a person without this
# credentials = { token = "env:SHOP_TOKEN" }        # where a secret comes from, never the secret itself

# [[rules]]                                         # or: gloveport policy set ask 'shop.refunds.*' --when …
# ask = "shop.refunds.*"                            # allow, ask or deny; deny wins over ask, and ask over allow
# when = 'args.amount > 100'
# reason = "large refunds"

# [limits]
# wall_seconds = 60
# max_calls = 1000

# [sandbox]
# minimum = "kernel"                                # refuse to run in a weaker sandbox
"""


def init_command(*, yes: bool, as_json: bool, color: str) -> int:
    """Write the file, unless there is one; return the exit code."""
    err, out = stream(sys.stderr, color), stream(sys.stdout, color)
    path = Path.cwd() / CONFIG_FILE
    before = read_text(path)
    if before is not None and before.strip():
        raise OptionError(f"{path} exists already; nothing was changed", hint="`gloveport config show` shows what it says")
    change = FileChange(path, before, TEXT)
    if not as_json:
        change.show(err)
    if sys.stdin.isatty():
        ask(f"Write {path}?", err, yes=yes, as_json=as_json)
    change.make()
    if as_json:
        write_document(out, {"ok": True, "file": str(path)})
    else:
        err.line(f"{err.paint('✓', 'green')} wrote {path}")
        err.line(f"  next: {as_typed('gloveport add --help')}")
    return 0
