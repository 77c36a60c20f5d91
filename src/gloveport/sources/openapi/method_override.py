"""Names that ask a service for another method than the request's own: a GET that carries one may delete."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

from gloveport.sources.openapi.operation import Operation

OVERRIDE_NAMES = frozenset({"httpmethod", "methodoverride", "xhttpmethod", "xhttpmethodoverride", "xmethodoverride"})
WRITING_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def is_override(name: str) -> bool:
    """True for a name of a header or a parameter that frameworks take a method from, however loosely they read it.

    A plain `method` is not one: it is as likely to be that of a payment.
    """
    letters = re.sub("[^a-z]", "", name.lower())
    return letters in OVERRIDE_NAMES or (letters == "method" and name.lower() != letters)


def may_override(operation: Operation) -> bool:
    """True when a call of the operation, as it is defined, can ask for another method."""
    return any(is_override(parameter.name) for parameter in operation.parameters) or overrides(operation.path)


def overrides(url: str) -> bool:
    """True when the query of a URL asks for another method."""
    pairs = (pair.partition("=") for pair in url.partition("?")[2].replace(";", "&").split("&"))
    given = [(unquote_plus(name), unquote_plus(value)) for name, _, value in pairs]
    return any(
        is_override(name) or (name.lower() == "method" and value.upper() in WRITING_METHODS) for name, value in given
    )
