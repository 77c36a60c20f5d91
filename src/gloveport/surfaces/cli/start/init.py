"""`gloveport init`: writes a `gloveport.toml` with comments, and with `--example` a source to try."""

from __future__ import annotations

import sys
from pathlib import Path

from gloveport.config import load_config
from gloveport.errors import OptionError
from gloveport.folders import CONFIG_FILE
from gloveport.sources.trust import files_now, trust
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.file_change import FileChange, ask, read_text
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
EXAMPLE_SOURCE = """
[sources.shop]                                      # an example; `gloveport remove shop` removes it
functions = "shop.py"
"""


def init_command(*, example: bool, yes: bool, as_json: bool, color: str) -> int:
    """Write the file, unless there is one; return the exit code. With `example`, write and trust a source, too."""
    err, out = stream(sys.stderr, color), stream(sys.stdout, color)
    path = Path.cwd() / CONFIG_FILE
    before = read_text(path)
    if before is not None and before.strip():
        raise OptionError(f"{path} exists already; nothing was changed", hint="`gloveport config show` shows what it says")
    changes = [FileChange(path, before, TEXT + EXAMPLE_SOURCE if example else TEXT)]
    changes += [_example_tools(path.with_name("shop.py"))] if example else []
    for change in changes if not as_json else ():
        change.show(err)
    if sys.stdin.isatty():
        ask(f"Write {' and '.join(str(change.path) for change in changes)}?", err, yes=yes, as_json=as_json)
    for change in reversed(changes):
        change.make()
    if example:
        _trust_example(changes[1].path)
    if as_json:
        write_document(out, {"ok": True, "file": str(path)} | ({"example": str(changes[1].path)} if example else {}))
    else:
        err.line(f"{err.paint('✓', 'green')} wrote {' and '.join(str(change.path) for change in changes)}")
        err.line(f"  next: {as_typed('gloveport tools list shop' if example else 'gloveport add --help')}")
    return 0


def _trust_example(path: Path) -> None:
    """Let the example be opened, and import its own file alone."""
    config = next(source for source in load_config().sources if source.name == "shop")
    trust(config, files={name: digest for name, digest in files_now(config).items() if Path(name) == path})


def _example_tools(path: Path) -> FileChange:
    if read_text(path) is not None:
        raise OptionError(f"{path} exists already; nothing was changed", hint="use --example in another folder")
    return FileChange(path, None, Path(__file__).with_name("example_shop.py").read_text("utf-8"))
