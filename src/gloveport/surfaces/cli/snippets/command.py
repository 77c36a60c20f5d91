"""What the commands of `gloveport snippets` do. To save or delete one takes a person: see `approvals`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

from gloveport.host.port import Gloveport
from gloveport.store.snippets import Snippet, SnippetStore
from gloveport.store.stored_runs import StoredRuns
from gloveport.surfaces.cli.approvals.command import approver_of
from gloveport.surfaces.cli.run.command import load_tools
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.file_change import ask
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.record_documents import snippet_document
from gloveport.surfaces.saved_runs import check_saving, fingerprints, needed_tools, snippet_of
from gloveport.surfaces.terminal import Stream, visible, visible_line


def save_command(view: ViewOptions, id: str, named: tuple[str, str], tools: tuple[str, ...], *, yes: bool) -> int:
    """Save the program of a run as a snippet; return the exit code."""
    person = approver_of(view, "saving a snippet")
    with closing(StoredRuns(view.store_path)) as runs, closing(SnippetStore(view.store_path)) as store:
        run = runs.find(id)
        check_saving(run)
        prints = run_interruptible(_fingerprints(view, tools, needed_tools(store, run)))
        snippet = snippet_of(runs, run, named, prints)
        if not yes:
            _show(view.err, snippet)
            ask(f"save it as tools.{snippet.address}?", view.err, yes=False, as_json=view.as_json)
        store.save(snippet, person)
    if view.as_json:
        write_document(view.out, {"ok": True, "saved": snippet.address})
    else:
        view.err.line(f"saved; {as_typed(f'gloveport snippets run {snippet.name}')}")
    return 0


async def _fingerprints(view: ViewOptions, files: tuple[str, ...], addresses: Sequence[str]) -> dict[str, str]:
    port = Gloveport(sources=load_tools(files), config=view.settings(), spare=0, store=view.store_path)
    try:
        return await fingerprints(port, addresses)
    finally:
        await port.close()


def list_command(view: ViewOptions) -> int:
    """List the snippets; return the exit code."""
    with closing(SnippetStore(view.store_path)) as store:
        found = store.all()
    if view.as_json:
        write_document(view.out, {"ok": True, "snippets": [snippet_document(one) for one in found]})
        return 0
    for one in found:
        first = visible_line(one.snippet.description.partition("\n")[0])
        view.out.line(f"{view.out.paint(one.snippet.address, 'bold')}  {first}".rstrip())
    if not found:
        saves = as_typed("`gloveport snippets save RUN --name NAME`")
        view.err.line(view.err.fold(f"there are no snippets; {saves} saves one"))
    return 0


def show_command(view: ViewOptions, name: str) -> int:
    """Show a snippet; return the exit code."""
    with closing(SnippetStore(view.store_path)) as store:
        found = store.find(name)
    if view.as_json:
        write_document(view.out, {"ok": True, **snippet_document(found), "code": found.snippet.code})
        return 0
    _show(view.out, found.snippet)
    saved = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found.saved))
    view.out.line(view.out.paint(f"saved {saved} by {visible_line(found.saver)}", "dim"))
    return 0


def remove_command(view: ViewOptions, name: str) -> int:
    """Delete a snippet; return the exit code."""
    person = approver_of(view, "deleting a snippet")
    with closing(SnippetStore(view.store_path)) as store:
        store.remove(name, person)
    if view.as_json:
        write_document(view.out, {"ok": True, "removed": name})
    else:
        view.err.line(f"{visible_line(name)} is removed")
    return 0


def _show(out: Stream, snippet: Snippet) -> None:
    out.line(f"{out.paint(snippet.address, 'bold')}  {snippet.language}, {snippet.engine}, of the run {snippet.run[:12]}")
    if snippet.description:
        out.line(f"  {visible_line(snippet.description)}")
    for text in visible(snippet.code.rstrip()).split("\n"):
        out.line(f"  {out.paint('│', 'dim')} {text}")
    takes = "no input" if snippet.parameters is None else visible_line(", ".join(snippet.parameters) or "any object")
    out.line(f"  input: {takes}")
    out.line(f"  calls: {visible_line(', '.join(snippet.tools)) or 'no tools'}")
