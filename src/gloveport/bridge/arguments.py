"""A guest's positional values → the arguments of one tool, validated against its schema.

Values are copied before anything looks at them, and the copy that was validated is what goes on (B3). Validation reads
the plain JSON form: a date is its text, bytes are base64; what is sent keeps them as they came.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import jsonschema_rs
import msgspec

from gloveport.bridge.schema_cost import max_branches
from gloveport.bridge.to_data import copy_data
from gloveport.bridge.validation_errors import describe_errors
from gloveport.errors import ToolError
from gloveport.sources import Paged, Source
from gloveport.types import Tool

BACKTRACKS = 10_000
MAX_BRANCHES = 2000
FLAT = frozenset({type(None), bool, int, float, str})


class Contract:
    """One tool as the bridge calls it: its source and its schema, compiled once."""

    __slots__ = ("_is_valid", "_names", "_required", "_validator", "call", "path", "source", "suspended", "tool")

    def __init__(self, tool: Tool, source: Source, path: str, suspended: str | None = None) -> None:
        self.tool = tool
        self.source = source
        self.path = path
        self.suspended = suspended
        self.call: Callable[[Tool, dict[str, Any]], Awaitable[Any]] = source.call
        self._names = tool.parameters
        self._required = frozenset(tool.input_schema.get("required", ()))
        self._validator = _compiled(tool, path)
        self._is_valid = self._validator.is_valid

    def accept(self, values: Any) -> dict[str, Any]:
        """The arguments that the values stand for, copied and valid; raises ToolError `bad-arguments`."""
        if len(values) == 1 and type(values[0]) is dict:
            args = values[0].copy()
            try:  # what nearly every call brings: flat, valid arguments, of which a shallow copy is a whole one
                if FLAT.issuperset(map(type, args.values())) and self._is_valid(args):
                    return args
            except ValueError:
                pass
        try:
            given = [copy_data(value) for value in values] if type(values) is list else copy_data(values)
        except TypeError as error:
            raise self._refusal(f"something in it {error}") from None
        args = self._name(given)
        if not self._fits(args):
            raise self._refusal(describe_errors(self._validator, msgspec.to_builtins(args, str_keys=True), self.tool))
        return args

    def _fits(self, args: Any) -> bool:
        try:
            if self._is_valid(args):
                return True
        except ValueError:
            pass  # a date or bytes where the schema looks: judge the JSON form
        try:
            return self._is_valid(msgspec.to_builtins(args, str_keys=True))
        except ValueError:
            return False

    def named(self, given: Any) -> dict[str, Any]:
        """The arguments that the values stand for, valid or not."""
        return self._name(given)

    def _name(self, given: Any) -> dict[str, Any]:
        """Names for the values.

        Nothing is `{}`. One object is the arguments; but where the tool has one parameter and the object fits as that
        and not as the arguments, it is that parameter. Anything else is taken in the order of the schema. Trailing
        nulls (JavaScript's undefined) are dropped where the parameter may be left out.
        """
        if type(given) is dict:
            return given
        if not given:
            return {}
        if len(given) == 1 and type(given[0]) is dict:
            args = given[0]
            if len(self._names) == 1 and args and not self._fits(args):
                wrapped = {self._names[0]: args}
                return wrapped if self._fits(wrapped) else args
            return args
        given = list(given)
        while given and given[-1] is None and not self._is_required(len(given) - 1):
            given.pop()
        if len(given) > len(self._names):
            most = f"at most {len(self._names)} values" if self._names else "no arguments"
            raise self._refusal(f"{len(given)} values were given; it takes {most}")
        return dict(zip(self._names, given, strict=False))

    def _is_required(self, place: int) -> bool:
        return place < len(self._names) and self._names[place] in self._required

    def _refusal(self, problem: str) -> ToolError:
        message = f"bad arguments for `tools.{self.path}`: {problem}"
        return ToolError(message, code="bad-arguments", tool=self.path, hint=f'see tools.describe("{self.path}")')


class PagedContract(Contract):
    """A tool whose answer is gone through page by page: the last of the values is the cursor of the page to get."""

    __slots__ = ("_source",)

    def __init__(self, tool: Tool, source: Paged, path: str, suspended: str | None = None) -> None:
        super().__init__(tool, cast("Source", source), path, suspended)
        self._source = source
        self.call = self._page

    def accept(self, values: Any) -> dict[str, Any]:
        """The arguments and the cursor."""
        *given, cursor = values if isinstance(values, list) and values else [None]
        if not isinstance(cursor, str | None):
            raise self._refusal("a cursor is text that the page before gave")
        return {"args": super().accept(given), "cursor": cursor}

    def named(self, given: Any) -> dict[str, Any]:
        """The arguments without the cursor."""
        return self._name(given[:-1] if isinstance(given, list) else given)

    async def _page(self, tool: Tool, sent: dict[str, Any]) -> dict[str, Any]:
        page = await self._source.page(tool, sent["args"], sent["cursor"])
        return {"value": page.value, "next": page.next}


def _compiled(tool: Tool, path: str) -> jsonschema_rs.Validator:
    if max_branches(tool.input_schema) > MAX_BRANCHES:
        raise ToolError(f"the schema of `tools.{path}` can't be used: it has too many alternatives to try", tool=path)
    # The linear engine first: the guest chooses the text, so a backtracking pattern would be its lever on the host.
    for options in (jsonschema_rs.RegexOptions(), jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)):
        try:
            return jsonschema_rs.validator_for(
                dict(tool.input_schema), pattern_options=options, retriever=_refuse, validate_formats=False
            )
        except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
            problem = str(error).splitlines()[0]
    raise ToolError(f"the schema of `tools.{path}` can't be used: {problem}", tool=path)


def _refuse(uri: str) -> Any:
    """No schema may make the host fetch a URL or read a file."""
    raise ValueError(f"{uri} is outside the schema")
