"""`code_tool` as a tool of an agent framework: one module for each, which imports the framework when it is used."""

from __future__ import annotations

from gloveport.errors import OptionError


def not_installed(framework: str, extra: str) -> OptionError:
    """Return the error for a framework that is not installed."""
    return OptionError(f"{framework} is not installed", hint=f"pip install 'gloveport[{extra}]'")
