"""How a guest ended: what it says of it, taken for what it is, and what its exit_error says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gloveport.sandbox.guest import Exit
from gloveport.types import Limits

NEARLY_FULL_SHARE = 0.8  # a crash with this share of the memory in use is taken for the engine's failed allocation
OUT_OF_MEMORY_TEXTS = ("out of memory", "allocation of", "Cannot allocate memory", "failed to allocate")


@dataclass(frozen=True, slots=True)
class GuestNotes:
    """What the guest adds to its end, taken for what it is: claims of a hostile process."""

    pending: tuple[int, ...] = ()
    unhandled: tuple[str, ...] = ()
    dropped: int = 0

    @classmethod
    def from_guest(cls, notes: Mapping[str, Any]) -> GuestNotes:
        """The claims that have the right form; the rest is left out."""
        pending, unhandled, dropped = notes.get("pending"), notes.get("unhandled"), notes.get("dropped")
        return cls(
            tuple(item for item in pending[:1000] if type(item) is int) if isinstance(pending, list) else (),
            tuple(
                f"{str(item.get('type'))[:100]}: {str(item.get('message'))[:1000]}"
                for item in (unhandled[:20] if isinstance(unhandled, list) else ())
                if isinstance(item, dict)
            ),
            dropped if type(dropped) is int and dropped > 0 else 0,
        )


def exit_error(exit_: Exit, said: str, limits: Limits, idle_mb: float) -> dict[str, Any]:
    """Why a guest died by itself: memory, CPU time, or a crash."""
    full = exit_.signal is not None and exit_.max_rss_kb / 1024 - idle_mb > NEARLY_FULL_SHARE * limits.memory_mb
    if full or any(sign in said for sign in OUT_OF_MEMORY_TEXTS):
        return memory_error(limits)
    if exit_.cpu_seconds > limits.cpu_seconds:
        return {"code": "cpu-limit", "message": f"the program computed longer than {limits.cpu_seconds:g} s"}
    how = f"by signal {exit_.signal}" if exit_.signal else f"with exit code {exit_.code}"
    return {"code": "sandbox-crashed", "message": f"the sandbox process ended {how}"}


def memory_error(limits: Limits) -> dict[str, Any]:
    return {"code": "memory-limit", "message": f"the program needed more than {limits.memory_mb} MB of memory"}
