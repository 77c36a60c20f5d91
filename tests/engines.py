"""The engines that the contract is tested on, and what may differ between their languages."""

from typing import Any, NamedTuple

from gloveport import Outcome
from gloveport.types import Language


class Engine(NamedTuple):
    """An engine, and the language in which tests speak to it."""

    name: str
    language: Language

    def __str__(self) -> str:
        return self.name


ENGINES = (
    Engine("deno", "typescript"),
    Engine("quickjs", "typescript"),
    Engine("cpython", "python"),
    Engine("monty", "python"),
)
LACKS: Any = object()
"""Said for Monty of a program for `python` that it does not have the language for: it must tell so, and name `cpython`."""

AS_PYTHON: Any = object()
"""Said for Monty where it is the same as for `python`."""


class Per(NamedTuple):
    """Something that differs between the languages; None where it has no meaning in one.

    What is said for `python` is meant for both of its engines, unless something else is said for `monty`.
    """

    typescript: Any = None
    python: Any = None
    monty: Any = AS_PYTHON


def said(what: Any, engine: Engine) -> Any:
    """What is said for one engine."""
    if not isinstance(what, Per):
        return what
    own = engine.name == "monty" and what.monty is not AS_PYTHON
    return what.monty if own else getattr(what, engine.language)


def program_of(what: Per, engine: Engine) -> str | None:
    """The program that is said for one engine, if there is one."""
    told = said(what, engine)
    return what.python if told is LACKS else told


def assert_lacks(outcome: Outcome) -> None:
    """The program ended, before any call, because Monty lacks something; it says what, and which engine has it."""
    error = outcome.error
    assert error is not None
    assert error.code == "engine-lacks", error
    assert "the engine `monty` has no " in error.message
    assert "`cpython`" in (error.hint or "")
    assert outcome.calls == ()
