"""What a server tells or asks while a call is under way: its progress, and questions that a person must answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call has come, as its server says; `total` is None where that is not known."""

    source: str
    tool: str
    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What a server asks a person: the fields of a form (`schema`), or to visit `url`. All of it is untrusted text.

    `tool` is None where the protocol does not say which call the question belongs to.
    """

    source: str
    tool: str | None
    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person said; `content` are the form's fields, for `accept` alone."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict)


OnProgress = Callable[[Progress], None]
OnElicit = Callable[[Question], Awaitable[Answer]]


def question(source: str, tool: str | None, params: ElicitRequestParams) -> Question:
    """The question that a server's elicitation is."""
    if isinstance(params, ElicitRequestURLParams):
        return Question(source, tool, params.message, url=params.url)
    return Question(source, tool, params.message, schema=dict(params.requested_schema))


def wire_answer(asked: Question, answer: Answer) -> ElicitResult:
    """The answer as the protocol has it; a visit to a URL has no content."""
    if answer.action != "accept" or asked.url is not None:
        return ElicitResult(action=answer.action)
    return ElicitResult(action="accept", content=dict(answer.content))
