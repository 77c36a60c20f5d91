"""What can be called: addresses, look-up, suggestions, search, and documented types."""

from gloveport.catalog.catalog import Catalog, CatalogEntry, ToolDescription
from gloveport.catalog.search import SearchResult

__all__ = ["Catalog", "CatalogEntry", "SearchResult", "ToolDescription"]
