"""`code_tool` in the shapes of agent frameworks: one module each, which imports its framework when it is used."""

from __future__ import annotations

from gloveport.errors import OptionError


def missing(framework: str, extra: str) -> OptionError:
    """The error for a framework that is not installed."""
    return OptionError(f"{framework} is not installed", hint=f"pip install 'gloveport[{extra}]'")
