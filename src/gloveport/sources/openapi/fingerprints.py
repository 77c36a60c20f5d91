"""Fingerprints of compiled tools. One changes when anything that the tool shows or sends does, however far away."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from gloveport.sources.compiled_definition import shared_schema_names


class TextDigest(msgspec.Struct, frozen=True, gc=False):
    """The digest of a JSON text, and the names of the shared schemas that it refers to.

    There are thousands of them. The garbage collector, which stops everything else, does not look at them.
    """

    digest: bytes
    uses: tuple[str, ...]

    @classmethod
    def of(cls, text: bytes) -> TextDigest:
        """Return the digest of a text."""
        return cls(hashlib.sha256(text).digest(), tuple(sorted(set(shared_schema_names(text)))))


def closure_digests(parts: Mapping[str, TextDigest]) -> dict[str, bytes]:
    """Return, for each shared schema, a digest over itself and everything that it reaches.

    Schemas that reach each other share one digest. This is Tarjan's algorithm for strongly connected components, without
    recursion.
    """
    found: dict[str, bytes] = {}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    for root in parts:
        if root in index:
            continue
        work = [(root, iter(parts[root].uses))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            name, below = work[-1]
            step = next((use for use in below if use in parts and use not in found), None)
            if step is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    _close_component(name, stack, parts, found)
            elif step in index:
                low[name] = min(low[name], index[step])
            else:
                index[step] = low[step] = len(index)
                stack.append(step)
                work.append((step, iter(parts[step].uses)))
    return found


def _close_component(name: str, stack: list[str], parts: Mapping[str, TextDigest], found: dict[str, bytes]) -> None:
    members: list[str] = []
    while not members or members[-1] != name:
        members.append(stack.pop())
    below = {found[use] for member in members for use in parts[member].uses if use in found}
    own = sorted(parts[member].digest for member in members)
    digest = hashlib.sha256(b"".join([*own, b"|", *sorted(below)])).digest()
    found.update(dict.fromkeys(members, digest))


def fingerprint(shown: tuple[str, ...], definition: TextDigest, reached: Mapping[str, bytes]) -> str:
    """Return the SHA-256 (hex) over what a tool shows, its definition, and all shared schemas that it reaches."""
    hashed = hashlib.sha256(definition.digest)
    for text in shown:
        hashed.update(b"%d:" % len(text))
        hashed.update(text.encode("utf-8", "surrogatepass"))
    for use in definition.uses:
        hashed.update(reached.get(use, b"?"))
    return hashed.hexdigest()
