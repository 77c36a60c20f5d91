"""Checks the options of a port and of a run before anything starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gloveport.errors import OptionError
from gloveport.store.stored_runs import RUN_ID, RUN_ID_HINT
from gloveport.types import LANGUAGES, Limits, Strength


def limits_from(base: Limits, given: Limits | Mapping[str, Any] | None) -> Limits:
    """Return the given limits, or `base` with the given values changed."""
    if given is None:
        return base
    if isinstance(given, Limits):
        return given
    if isinstance(given, Mapping):
        return base.with_(**{str(name): value for name, value in given.items()})
    raise OptionError(f"limits must be Limits(…) or a mapping, not {type(given).__name__}")


def flags_from(settings: Mapping[str, Any], **given: Any) -> dict[str, bool]:
    """Return the flags: as they were given or, where that is False, as the settings say. Raise OptionError for no flag."""
    flags = {name: settings.get(name, False) if value is False else value for name, value in given.items()}
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise OptionError(f"{name} must be True or False, not {value!r}")
    return flags


def strength_from(minimum: str) -> Strength:
    """Return the minimum strength of a sandbox, checked."""
    if minimum not in ("full", "kernel", "none"):
        raise OptionError(f"minimum must be 'full', 'kernel' or 'none', not {minimum!r}")
    return minimum


def spare_from(spare: int | None) -> int:
    """Return the number of sandboxes to start in advance; by default one for each core, from 2 to 4."""
    if spare is None:
        return min(4, max(2, os.cpu_count() or 2))
    if isinstance(spare, bool) or not isinstance(spare, int) or not 0 <= spare <= 256:
        raise OptionError(f"spare must be a whole number from 0 to 256, not {spare!r}")
    return spare


def check_run(code: object, language: object, id: object = None) -> None:
    """Raise OptionError unless the code is text, the language is known, and the id of the run, if any, can be one."""
    if id is not None and not (isinstance(id, str) and RUN_ID.fullmatch(id)):
        raise OptionError(f"a run can't have the id {id!r:.80}", hint=f"an id has {RUN_ID_HINT}")
    if not isinstance(code, str):
        raise OptionError(f"code must be text, not {type(code).__name__}")
    if language not in LANGUAGES:
        raise OptionError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")


def check_busy(on_busy: object) -> bool:
    """Return whether a run waits for its session; raise OptionError unless the option is `wait` or `refuse`."""
    if on_busy not in ("wait", "refuse"):
        raise OptionError(f"on_busy must be 'wait' or 'refuse', not {on_busy!r}")
    return on_busy == "wait"


def env_from(env: Mapping[str, str] | None) -> dict[str, str]:
    """Return a checked copy of the environment variables that the program sees."""
    if env is not None and not isinstance(env, Mapping):
        raise OptionError(f"env must be a mapping of text to text, not {type(env).__name__}")
    out = dict(env or {})
    for name, value in out.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise OptionError(f"env must map text to text; {name!r} does not")
    return out
