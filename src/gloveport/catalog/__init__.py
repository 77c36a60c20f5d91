"""What can be called: addresses, look-up, suggestions, search, and documented types.

`catalog` answers every question about the tools of a port · `search` ranks tools by words, `semantic` by meaning ·
`stored_index` keeps a search index on disk ·
`descriptions` tells agents how a tool is called, and `result_parts` limits the type of its result ·
`typescript_stubs` and `python_stubs` write tools as documented declarations · `declarations` writes those that a type
checker needs for one program · `confusables` finds names that look alike · `guest_globals` lists names that are taken in
guests · `fingerprint` identifies a version of a definition.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gloveport.catalog.catalog import Catalog, CatalogEntry
    from gloveport.catalog.descriptions import ToolDescription
    from gloveport.catalog.result_parts import UnknownPart
    from gloveport.catalog.search import SearchResult

__all__ = ["Catalog", "CatalogEntry", "SearchResult", "ToolDescription", "UnknownPart"]

_HOMES = {"SearchResult": "search", "ToolDescription": "descriptions", "UnknownPart": "result_parts"}


def __getattr__(name: str) -> Any:
    """Load the catalog when it is used: a search of the index on disk does without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'catalog')}"), name)
