"""Fingerprints of compiled tools: they change when anything that a tool shows or sends has changed, however far away."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from gloveport.sources.compiled_definition import shared_schema_names


class TextDigest(NamedTuple):
    """A shared schema: the digest of its text, and the names that it refers to."""

    digest: bytes
    uses: tuple[str, ...]

    @classmethod
    def of(cls, text: bytes) -> TextDigest:
        """What is remembered of a text."""
        return cls(hashlib.sha256(text).digest(), tuple(sorted(set(shared_schema_names(text)))))


def closures(parts: Mapping[str, TextDigest]) -> dict[str, bytes]:
    """For each shared schema a digest over itself and all that it reaches.

    Schemas that reach each other share one digest: Tarjan's strongly connected components, without recursion.
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
                    _settle(name, stack, parts, found)
            elif step in index:
                low[name] = min(low[name], index[step])
            else:
                index[step] = low[step] = len(index)
                stack.append(step)
                work.append((step, iter(parts[step].uses)))
    return found


def _settle(name: str, stack: list[str], parts: Mapping[str, TextDigest], found: dict[str, bytes]) -> None:
    members: list[str] = []
    while not members or members[-1] != name:
        members.append(stack.pop())
    below = {found[use] for member in members for use in parts[member].uses if use in found}
    own = sorted(parts[member].digest for member in members)
    digest = hashlib.sha256(b"".join([*own, b"|", *sorted(below)])).digest()
    found.update(dict.fromkeys(members, digest))


def fingerprint(shown: tuple[str, ...], definition: TextDigest, reached: Mapping[str, bytes]) -> str:
    """SHA-256 (hex) over what a tool shows, its definition, and all shared schemas that it reaches."""
    summed = hashlib.sha256(definition.digest)
    for text in shown:
        summed.update(b"%d:" % len(text))
        summed.update(text.encode("utf-8", "surrogatepass"))
    for use in definition.uses:
        summed.update(reached.get(use, b"?"))
    return summed.hexdigest()
