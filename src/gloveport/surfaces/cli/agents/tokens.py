"""Adds and removes the tokens of agents and approvers; a new token is printed once."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from gloveport.config.governance import AGENT_NAME, AGENT_NAME_HINT
from gloveport.errors import OptionError
from gloveport.store.tokens import Role, TokenStore
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.terminal import visible_line


def check_name(name: str, role: Role) -> None:
    """Raise OptionError for a name that nobody can have."""
    if not AGENT_NAME.fullmatch(name):
        raise OptionError(f"an {role} can't be called {name!r:.60}", hint=AGENT_NAME_HINT)


def add_token(view: ViewOptions, name: str, role: Role, use: str, **more: Any) -> int:
    """Create a token and print it; return the exit code. `use` says what to do with it, `more` goes into the document."""
    with closing(TokenStore(view.store_path)) as tokens:
        token = tokens.add(name, role)
    if view.as_json:
        write_document(view.out, {"ok": True, role: name, "token": token, **more})
    else:
        view.out.line(token)
        view.err.line(view.err.fold(f"this is shown once: {use}"))
    return 0


def remove_token(view: ViewOptions, name: str, role: Role) -> int:
    """Delete a token; return the exit code."""
    with closing(TokenStore(view.store_path)) as tokens:
        tokens.remove(name, role)
    if view.as_json:
        write_document(view.out, {"ok": True, "removed": name})
    else:
        view.err.line(f"the token of {visible_line(name)} is deleted")
    return 0
