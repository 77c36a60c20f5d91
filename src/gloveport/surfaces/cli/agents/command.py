"""What the commands of `gloveport agents` do."""

from __future__ import annotations

import time
from contextlib import closing

from gloveport.config.governance import AGENT_NAME, AGENT_NAME_HINT
from gloveport.errors import OptionError
from gloveport.store.tokens import TokenStore
from gloveport.surfaces.cli.approvals.command import store_path
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.terminal import visible_line
from gloveport.types import DEFAULT_AGENT


def add_command(view: ViewOptions, name: str) -> int:
    """Create the token of an agent, and print it once; return the exit code."""
    if not AGENT_NAME.fullmatch(name):
        raise OptionError(f"an agent can't be called {name!r:.60}", hint=AGENT_NAME_HINT)
    if name == DEFAULT_AGENT:
        raise OptionError(f"the agent {name} has the server's token", hint="choose another name")
    with closing(TokenStore(store_path(view))) as tokens:
        token = tokens.add(name, "agent")
    known = name in view.settings(quiet=True).governance.agents
    if view.as_json:
        write_document(view.out, {"ok": True, "agent": name, "token": token, "configured": known})
        return 0
    view.out.line(token)
    view.err.line(f"this is shown once: give it to the client of {name} as its bearer token for `gloveport serve`")
    if not known:
        view.err.line(
            f"hint: add [agents.{name}] to gloveport.toml, with the tools that it may see; until then it is refused"
        )
    return 0


def list_command(view: ViewOptions) -> int:
    """List the agents; return the exit code."""
    configured = view.settings(quiet=True).governance.agents
    with closing(TokenStore(store_path(view))) as tokens:
        created = dict(tokens.names("agent"))
    names = sorted({*configured, *created})
    if view.as_json:
        rows = [
            {"name": name, "configured": name in configured, "token_created": created.get(name)}
            | ({"tools": list(configured[name].tools)} if name in configured else {})
            for name in names
        ]
        write_document(view.out, {"ok": True, "agents": rows})
        return 0
    for name in names:
        since = time.strftime("%Y-%m-%d", time.localtime(created[name])) if name in created else ""
        token = f"token of {since}" if since else "no token"
        tools = ", ".join(configured[name].tools) if name in configured else "not in gloveport.toml: refused"
        view.out.line(f"{view.out.paint(name, 'bold')}  {token}  {visible_line(tools)}")
    if not names:
        view.err.line("there are no named agents: `gloveport agents add NAME` makes a token for one")
    return 0


def remove_command(view: ViewOptions, name: str) -> int:
    """Delete the token of an agent; return the exit code."""
    with closing(TokenStore(store_path(view))) as tokens:
        tokens.remove(name, "agent")
    if view.as_json:
        write_document(view.out, {"ok": True, "removed": name})
    else:
        view.err.line(f"the token of {visible_line(name)} is deleted")
    return 0
