"""Make a snippet of a run in the store: the checks, the tools that it needs, and its parameters."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from gloveport.errors import OptionError
from gloveport.host.port import Gloveport
from gloveport.store.snippets import SOURCE, Snippet, SnippetStore
from gloveport.store.stored_runs import IMPORTED, StoredRun, StoredRuns


def check_saving(run: StoredRun) -> None:
    """Raise OptionError for a run that can't be saved."""
    if run.status != "completed":
        message = f"the run {run.id[:12]} is {run.status}: only one that has completed can be saved"
        raise OptionError(message, code="not-savable")
    if run.obstacle == IMPORTED:
        message = f"the run {run.id[:12]} was imported: only one that was made here can be saved"
        raise OptionError(message, code="not-savable")


def needed_tools(store: SnippetStore, run: StoredRun) -> list[str]:
    """Return the tools that a run has called, with those of the snippets that it has called."""
    called = store.tools_of(run.id)
    below = [tool for address in called if address.startswith(f"{SOURCE}.") for tool in store.find(address).snippet.tools]
    return sorted({*(address for address in called if not address.startswith(f"{SOURCE}.")), *below})


async def fingerprints(port: Gloveport, addresses: Sequence[str]) -> dict[str, str]:
    """Return the fingerprint of each tool; raise OptionError if one is missing here."""
    await port.connect(naming=" ".join(addresses))
    found = {address: port.catalog.fingerprint(address) for address in addresses}
    missing = [address for address, digest in found.items() if digest is None]
    if missing:
        hint = "configure its source, or name the file of the functions with --tools"
        raise OptionError(
            f"the run called {', '.join(missing[:10])}, which is not there now", code="not-savable", hint=hint
        )
    return {address: digest for address, digest in found.items() if digest is not None}


def snippet_of(runs: StoredRuns, run: StoredRun, named: tuple[str, str], tools: dict[str, str]) -> Snippet:
    """Return the program of a run as a snippet with a name and a description."""
    given = run.language, run.engine, runs.code(run), tools, _parameters(runs, run), run.id
    return Snippet(*named, *given)  # pyright: ignore[reportArgumentType]


def _parameters(runs: StoredRuns, run: StoredRun) -> tuple[str, ...] | None:
    setup = orjson.loads(runs.recording(run).events[0])[2]
    if not setup["has_input"]:
        return None
    given = setup.get("input")
    if not isinstance(given, dict):
        raise OptionError("the input of this run is not an object: a snippet is called with one", code="not-savable")
    return tuple(given)
