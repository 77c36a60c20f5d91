"""Names that ask a service for another method than the request's own: a GET that carries one may delete."""

from __future__ import annotations

from urllib.parse import unquote_plus

from gloveport.sources.openapi.operation import Operation

NAMES = frozenset({"_method", "x-http-method", "x-http-method-override", "x-method-override"})


def is_override(name: str) -> bool:
    """True for a name of a header or a parameter that frameworks take a method from."""
    return name.lower() in NAMES


def may_override(operation: Operation) -> bool:
    """True when a call of the operation, as it is defined, can ask for another method."""
    return any(is_override(parameter.name) for parameter in operation.parameters) or overrides(operation.path)


def overrides(url: str) -> bool:
    """True when the query of a URL asks for another method."""
    pairs = url.partition("?")[2].replace(";", "&").split("&")
    return any(is_override(unquote_plus(pair.partition("=")[0])) for pair in pairs)
