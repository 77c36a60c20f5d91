"""Why a guest ended: what it reported itself, as unverified claims, and what its exit status shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gloveport.sandbox.guest import Exit
from gloveport.sandbox.jail.limits import MAX_THREADS
from gloveport.sandbox.watchdog import ExceededLimit
from gloveport.types import Limits

NEARLY_FULL_SHARE = 0.8  # a crash above this share of the memory limit counts as a failed allocation of the engine
OUT_OF_MEMORY_TEXTS = ("out of memory", "allocation of", "Cannot allocate memory", "failed to allocate")


@dataclass(frozen=True, slots=True)
class GuestNotes:
    """What the guest reported at its end: the unverified claims of a hostile process."""

    pending: tuple[int, ...] = ()
    unhandled: tuple[str, ...] = ()
    dropped: int = 0

    @classmethod
    def from_guest(cls, notes: Mapping[str, Any]) -> GuestNotes:
        """Return the claims that have the right form, cut to a bounded size; drop the rest."""
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


_PLACE = re.compile(r'File "program\.py", line (\d{1,7})\b')


def place_in(stderr: str) -> dict[str, int]:
    """Return the line that a guest claims to have been at, in the stack that it wrote before a limit of time."""
    found = _PLACE.search(stderr)
    return {"line": int(found[1])} if found else {}


def limit_error(exceeded: ExceededLimit, limits: Limits) -> dict[str, Any]:
    """Return the error for a guest that the watchdog has killed."""
    match exceeded:
        case "time-limit":
            return {"code": exceeded, "message": f"the run took longer than {limits.wall_seconds:g} s"}
        case "cpu-limit":
            message = f"the program used more than {limits.cpu_seconds:g} s of CPU time"
            return {"code": exceeded, "message": message}
        case "memory-limit":
            return {"code": exceeded, "message": f"the program needed more than {limits.memory_mb} MB of memory"}
        case "thread-limit":
            message = f"the engine had more than {MAX_THREADS} threads: the program has taken it over"
            return {"code": "sandbox-crashed", "message": message}


def exit_error(exit_: Exit, stderr: str, limits: Limits, idle_mb: float) -> dict[str, Any]:
    """Return the error for a guest that died by itself: memory limit, CPU limit or crash."""
    full = exit_.signal is not None and exit_.max_rss_kb / 1024 - idle_mb > NEARLY_FULL_SHARE * limits.memory_mb
    if full or any(text in stderr for text in OUT_OF_MEMORY_TEXTS):
        return limit_error("memory-limit", limits)
    if exit_.cpu_seconds > limits.cpu_seconds:
        return limit_error("cpu-limit", limits)
    how = f"by signal {exit_.signal}" if exit_.signal else f"with exit code {exit_.code}"
    return {"code": "sandbox-crashed", "message": f"the sandbox process ended {how}"}
