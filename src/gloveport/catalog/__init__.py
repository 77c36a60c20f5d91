"""What can be called: addresses, look-up, suggestions, search, and documented types.

`catalog` answers every question about the tools of a port · `search` ranks tools by words, `semantic` by meaning ·
`descriptions` tells agents how a tool is called, and `result_parts` limits the type of its result ·
`typescript_stubs` and `python_stubs` write tools as documented declarations · `declarations` writes those that a type
checker needs for one program · `confusables` finds names that look alike · `guest_globals` lists names that are taken in
guests · `fingerprint` identifies a version of a definition.
"""

from gloveport.catalog.catalog import Catalog, CatalogEntry
from gloveport.catalog.descriptions import ToolDescription
from gloveport.catalog.result_parts import UnknownPart
from gloveport.catalog.search import SearchResult

__all__ = ["Catalog", "CatalogEntry", "SearchResult", "ToolDescription", "UnknownPart"]
