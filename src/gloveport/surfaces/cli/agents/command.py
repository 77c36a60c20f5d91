"""What the commands of `gloveport agents` do."""

from __future__ import annotations

import time
from contextlib import closing

from gloveport.errors import OptionError
from gloveport.store.tokens import Role, TokenStore
from gloveport.surfaces.cli.agents.tokens import add_token, check_name, remove_token
from gloveport.surfaces.cli.approvals.command import approver_of
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import visible_line
from gloveport.types import DEFAULT_AGENT


def add_command(view: ViewOptions, name: str, role: Role = "agent") -> int:
    """Create the token of an agent or of another role, and print it once; return the exit code."""
    check_name(name, role)
    if role in ("approver", "admin"):
        approver_of(view, f"making the token of an {role}")
        return add_token(view, name, role, "keep it where no agent reads it: it is for the HTTP API")
    if role == "monitor":
        return add_token(view, name, role, "Prometheus sends it as its bearer token for `/metrics`")
    if name == DEFAULT_AGENT:
        raise OptionError(f"the agent {name} has the server's token", hint="choose another name")
    known = name in view.settings(quiet=True).governance.agents
    use = f"give it to the client of {name} as its bearer token for `gloveport serve`"
    add_token(view, name, role, use, configured=known)
    if not known and not view.as_json:
        view.err.line(
            f"hint: add [agents.{name}] to gloveport.toml, with the tools that it may see; until then it is refused"
        )
    return 0


def list_command(view: ViewOptions) -> int:
    """List the agents; return the exit code."""
    configured = view.settings(quiet=True).governance.agents
    with closing(TokenStore(view.store_path)) as tokens:
        created = dict([*tokens.names("agent"), *tokens.names("host")])
        others = [(name, role) for role in ("approver", "admin", "monitor") for name, _ in tokens.names(role)]
    names = sorted({*configured, *created})
    if view.as_json:
        rows = [
            {"name": name, "configured": name in configured, "token_created": created.get(name)}
            | ({"tools": list(configured[name].tools)} if name in configured else {})
            for name in names
        ]
        listed = [{"name": name, "role": role} for name, role in others]
        write_document(view.out, {"ok": True, "agents": rows, "others": listed})
        return 0
    for name in names:
        since = time.strftime("%Y-%m-%d", time.localtime(created[name])) if name in created else ""
        token = f"token of {since}" if since else "no token"
        tools = ", ".join(configured[name].tools) if name in configured else "not in gloveport.toml: refused"
        view.out.line(f"{view.out.paint(name, 'bold')}  {token}  {visible_line(tools)}")
    for name, role in others:
        view.out.line(f"{view.out.paint(name, 'bold')}  {role}")
    if not names and not others:
        view.err.line(as_typed("there are no named agents: `gloveport agents add NAME` makes a token for one"))
    return 0


def remove_command(view: ViewOptions, name: str, role: Role = "agent") -> int:
    """Delete a token; return the exit code."""
    return remove_token(view, name, role)
