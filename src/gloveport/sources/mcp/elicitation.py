"""What a server sends while a call is in progress: its progress, and questions that a person must answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult


@dataclass(frozen=True, slots=True)
class CallProgress:
    """The progress of a call, as its server reports it; `total` is None where that is not known."""

    source: str
    tool: str
    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ElicitationQuestion:
    """A server's question to a person: to fill in a form (`schema`), or to visit `url`. All of it is untrusted text.

    `tool` is None where the protocol does not say which call the question belongs to.
    """

    source: str
    tool: str | None
    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """A person's answer; `content` has the form's fields, for `accept` alone."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict)


OnProgress = Callable[[CallProgress], None]
OnElicit = Callable[[ElicitationQuestion], Awaitable[ElicitationAnswer]]


def to_question(source: str, tool: str | None, params: ElicitRequestParams) -> ElicitationQuestion:
    """Return the question in a server's elicitation request."""
    if isinstance(params, ElicitRequestURLParams):
        return ElicitationQuestion(source, tool, params.message, url=params.url)
    return ElicitationQuestion(source, tool, params.message, schema=dict(params.requested_schema))


def to_result(question: ElicitationQuestion, answer: ElicitationAnswer) -> ElicitResult:
    """Return the answer as the protocol has it; a visit to a URL has no content."""
    if answer.action != "accept" or question.url is not None:
        return ElicitResult(action=answer.action)
    return ElicitResult(action="accept", content=dict(answer.content))
