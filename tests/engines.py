"""The engines that the contract is tested on, and what may differ between their languages."""

from typing import Any, NamedTuple

from gloveport.types import Language


class Engine(NamedTuple):
    """An engine, and the language in which tests speak to it."""

    name: str
    language: Language

    def __str__(self) -> str:
        return self.name


ENGINES = (Engine("deno", "typescript"), Engine("cpython", "python"))


class Per(NamedTuple):
    """Something that differs between the languages; None where it has no meaning in one."""

    typescript: Any = None
    python: Any = None


def said(what: Any, engine: Engine) -> Any:
    """What is said for one engine."""
    return getattr(what, engine.language) if isinstance(what, Per) else what
