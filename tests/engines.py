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

    @property
    def kind(self) -> str:
        """The engine itself, wherever it runs."""
        return self.name.removeprefix("remote-")


ENGINES = (
    Engine("deno", "typescript"),
    Engine("quickjs", "typescript"),
    Engine("cpython", "python"),
    Engine("monty", "python"),
)
REMOTE_ENGINES = tuple(Engine(f"remote-{engine.name}", engine.language) for engine in ENGINES)
"""The same engines at a sandbox host."""

LACKS: Any = object()
"""Said for an engine with less of a language than the first one has: the program must be told so, and the first one named."""

AS_LANGUAGE: Any = object()
"""Said for such an engine where it is the same as for its language."""

FIRST = {"quickjs": "deno", "monty": "cpython"}
"""The engines with less of a language, and the one that has all of it."""


class Per(NamedTuple):
    """Something that differs between the languages; None where it has no meaning in one.

    What is said for a language is meant for both of its engines, unless something else is said for `monty` or `quickjs`.
    """

    typescript: Any = None
    python: Any = None
    monty: Any = AS_LANGUAGE
    quickjs: Any = AS_LANGUAGE


def said(what: Any, engine: Engine) -> Any:
    """What is said for one engine."""
    if not isinstance(what, Per):
        return what
    own = getattr(what, engine.kind) if engine.kind in FIRST else AS_LANGUAGE
    return getattr(what, engine.language) if own is AS_LANGUAGE else own


def program_of(what: Per, engine: Engine) -> str | None:
    """The program that is said for one engine, if there is one."""
    told = said(what, engine)
    return getattr(what, engine.language) if told is LACKS else told


def assert_lacks(outcome: Outcome, engine: Engine) -> None:
    """The program ended, before any call, because the engine lacks something; it says what, and which engine has it."""
    error = outcome.error
    assert error is not None
    assert error.code == "engine-lacks", error
    assert f"the engine `{engine.kind}` has no " in error.message
    assert f"`{FIRST[engine.kind]}`" in (error.hint or "")
    assert outcome.calls == ()
