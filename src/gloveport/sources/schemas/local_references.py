"""Resolve the references inside one schema: pointers, anchors, and ids of its parts. Nothing outside it is ever read."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

MAX_URI_CHARS = 2000


class Target(NamedTuple):
    """A schema that a reference points to, the resource that it belongs to, and a name for it."""

    schema: Any
    resource: str
    name: str


class LocalReferences:
    """The places of one document that references can name. A part with an `$id` is a resource of its own."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._resources: dict[str, Any] = {"": root}
        self._anchors: dict[tuple[str, str], Any] = {}
        self.root = self._collect(root)

    def _collect(self, root: dict[str, Any]) -> str:
        """Note all ids and anchors; return the id of the document itself."""
        waiting: list[tuple[Any, str]] = [(root, "")]
        first = None
        while waiting:
            node, resource = waiting.pop()
            if isinstance(node, dict):
                resource = self.resource_of(node, resource)
                first = resource if first is None else first
                self._resources.setdefault(resource, node)
                for key in ("$anchor", "$dynamicAnchor"):
                    if isinstance(node.get(key), str):
                        self._anchors.setdefault((resource, node[key]), node)
                waiting += [(below, resource) for below in node.values()]
            elif isinstance(node, list):
                waiting += [(below, resource) for below in node]
        return first or ""

    def resource_of(self, node: dict[str, Any], around: str) -> str:
        """Return the resource that a schema belongs to: its own when it has an `$id`, else that of the schema around it."""
        own = node.get("$id", node.get("id"))
        if not isinstance(own, str) or not own or own.startswith("#") or len(own) > MAX_URI_CHARS:
            return around
        return _joined(around, own)

    def find(self, reference: str, resource: str) -> Target | None:
        """Return what a reference in this resource points to; None when that is not part of the document."""
        if len(reference) > MAX_URI_CHARS:
            return None
        address, fragment = urldefrag(reference)
        base = _joined(resource, address) if address else resource
        if base not in self._resources:
            return None
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            found = self._anchors.get((base, fragment))
            return None if found is None else Target(found, base, fragment)
        node = self._resources[base]
        for step in fragment.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isdecimal() and len(key) < 9 and int(key) < len(node):
                node = node[int(key)]
            else:
                return None
            if isinstance(node, dict):
                base = self.resource_of(node, base)
        return Target(node, base, fragment.rpartition("/")[2])


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, urldefrag(address).url)[:MAX_URI_CHARS]
    except ValueError:
        return address
