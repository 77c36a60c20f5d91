"""What can be called: addresses, look-up, suggestions, search, and documented types."""

from gloveport.catalog.catalog import Catalog, Description, Entry
from gloveport.catalog.search import Matches

__all__ = ["Catalog", "Description", "Entry", "Matches"]
