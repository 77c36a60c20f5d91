"""Recognise method overrides: names that ask a service for another method, so that a GET may delete."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

from gloveport.sources.openapi.operation import Operation

OVERRIDE_NAMES = frozenset({"httpmethod", "methodoverride", "xhttpmethod", "xhttpmethodoverride", "xmethodoverride"})
WRITING_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def is_override(name: str) -> bool:
    """Return True for a header or parameter name that some framework reads the method from, however loosely it matches.

    A plain `method` does not count: it may as well be the method of a payment.
    """
    letters = re.sub("[^a-z]", "", name.lower())
    return letters in OVERRIDE_NAMES or (letters == "method" and name.lower() != letters)


def may_override(operation: Operation) -> bool:
    """Return True when the operation itself defines a way to ask for another method."""
    return any(is_override(parameter.name) for parameter in operation.parameters) or query_overrides(operation.path)


def query_overrides(url: str) -> bool:
    """Return True when the query of a URL asks for another method."""
    pairs = (pair.partition("=") for pair in url.partition("?")[2].replace(";", "&").split("&"))
    given = [(unquote_plus(name), unquote_plus(value)) for name, _, value in pairs]
    return any(
        is_override(name) or (name.lower() == "method" and value.upper() in WRITING_METHODS) for name, value in given
    )
