"""Builds the catalog of the sources that are open: what does not fit in is left out and reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gloveport.catalog import Catalog
from gloveport.errors import GloveportError
from gloveport.host.pinning import shown_while_suspended, suspended_tools
from gloveport.sources import OpenedSource, Source
from gloveport.types import Problem, Tool


def build_catalog(
    own: Iterable[Source],
    opened: Iterable[OpenedSource],
    problems: Iterable[Problem],
    likely_names: Mapping[str, str],
) -> tuple[Catalog, tuple[Problem, ...]]:
    """Return the catalog, and all problems: those given, and one for each source that does not fit in.

    `likely_names` has the names that sources would have got which `problems` know by their text alone.
    """
    sources, suspended, shown = list(own), dict[str, str](), dict[str, Tool]()
    found = list(problems)
    for one in opened:
        try:
            changed = suspended_tools(one)
            Catalog([*sources, one.source])
        except GloveportError as error:
            found.append(Problem(one.name, error.message, error.advice))
            continue
        sources.append(one.source)
        suspended |= changed
        shown |= shown_while_suspended(one, changed)
    broken = {likely_names.get(each.source, each.source): each for each in found if each.broken}
    return Catalog(sources, suspended, shown, broken), tuple(found)
