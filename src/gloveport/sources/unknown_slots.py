"""Warn about configured credentials that a source has no slot for: they would never be sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gloveport.suggestions import did_you_mean


def unknown_slots(source: str, configured: Sequence[str], slots: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each configured slot that the source does not have."""
    known = ", ".join(f"`{slot}`" for slot in slots)
    for name in configured:
        if name not in slots:
            meant = did_you_mean(name, slots)
            yield (
                f"the source {source} has no credential slot `{name}`, so this credential is never sent; "
                f"{meant + ' ' if meant else ''}its slots are {known}"
            )
