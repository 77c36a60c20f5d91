"""Turn the values that a guest passed into the arguments of one tool, validated against its schema.

Values are copied before anything reads them, and the validated copy is what the source gets (B3). Validation reads the
plain JSON form, in which a date is text and bytes are base64; the arguments that are sent keep dates and bytes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import jsonschema_rs
import msgspec

from gloveport.bridge.to_data import copy_data, is_plain
from gloveport.bridge.validation_cost import holds_more, is_quick, is_too_expensive
from gloveport.bridge.validation_errors import describe_errors
from gloveport.errors import ToolError
from gloveport.rules.labels import ToolLabels
from gloveport.schema_cost import SchemaCost, schema_cost
from gloveport.sources import AttributingSource, KeyedSource, PageDescribingSource, PagedSource, Source
from gloveport.types import Tool

MAX_REGEX_BACKTRACKS = 10_000
MAX_ARGUMENT_VALUES = 100_000  # of a foreign tool: its source encodes them in one step
SCALAR_TYPES = frozenset({type(None), bool, int, float, str})


class Contract:
    """One tool with the source that implements it and its compiled input schema."""

    __slots__ = (
        *("_cost", "_is_valid", "_names", "_required", "_validator"),
        *("call", "call_with_key", "errors_attributed", "labels", "path", "source", "suspended", "tool"),
    )

    def __init__(
        self, tool: Tool, source: Source, path: str, suspended: str | None = None, labels: ToolLabels | None = None
    ) -> None:
        self.tool = tool
        self.labels = labels
        self.source = source
        self.path = path
        self.suspended = suspended
        self.errors_attributed = isinstance(source, AttributingSource)
        self.call: Callable[[Tool, dict[str, Any]], Awaitable[Any]] = source.call
        keyed = tool.writes and isinstance(source, KeyedSource) and source.takes_key(tool)
        self.call_with_key = source.call_with_key if keyed and isinstance(source, KeyedSource) else None
        self._names = tool.parameters
        self._required = frozenset(tool.input_schema.get("required", ()))
        self._cost = schema_cost(tool.input_schema)
        self._validator = _compiled(tool, path, self._cost)
        self._is_valid = self._validator.is_valid

    @property
    def gives_json(self) -> bool:
        """Whether the result is what the source has read from JSON, and not an object of the host's program."""
        return self.tool.kind != "function"

    def may_send(self, sent: dict[str, Any]) -> bool:
        """Return whether a call with these arguments can send data out."""
        return self.labels is not None and self.labels.may_send(sent)

    def accepts_quickly(self, size: float) -> bool:
        """Return True when values whose JSON has so many bytes can be validated on the event loop, whatever they are."""
        return is_quick(self._cost, size)

    def accept_slowly(self, values: Any, *, shared: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what `accept` and `named_arguments` return. It refuses values that would take too long to validate.

        With `shared`, both are the same: of arguments so large that nothing keeps them once they are sent, plain JSON as it
        was decoded.
        """
        if self.tool.kind != "function" and holds_more(values, MAX_ARGUMENT_VALUES):
            raise self._refusal(f"they hold more than {MAX_ARGUMENT_VALUES:,} values: pass fewer at a time")
        try:
            given = values if shared and is_plain(values) else copy_data(values)
        except TypeError as error:
            raise self._refusal(f"one of the values {error}") from None
        for args in (given[0], dict.fromkeys(self._names, given[0])) if given and len(given) == 1 else (given,):
            if is_too_expensive(self.tool.input_schema, args):
                raise self._refusal("they take too long to validate: pass fewer values at a time")
        sent = self._accepted(given)
        return sent, sent if shared else copy_data(sent)

    def accept(self, values: Any) -> dict[str, Any]:
        """Return the values as named arguments, copied and validated; raises ToolError `bad-arguments`."""
        if len(values) == 1 and type(values[0]) is dict:
            args = values[0].copy()
            try:  # the usual call passes valid scalars: then a shallow copy is a full one
                if SCALAR_TYPES.issuperset(map(type, args.values())) and self._is_valid(args):
                    return args
            except ValueError:
                pass
        try:
            given = [copy_data(value) for value in values] if type(values) is list else copy_data(values)
        except TypeError as error:
            raise self._refusal(f"one of the values {error}") from None
        return self._accepted(given)

    def _accepted(self, given: Any) -> dict[str, Any]:
        """Return copied values as named arguments, validated."""
        args = self._name(given)
        if not self._fits(args):
            raise self._refusal(describe_errors(self._validator, msgspec.to_builtins(args, str_keys=True), self.tool))
        return args

    def accept_named(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return named arguments, copied and validated; raises ToolError `bad-arguments`."""
        copied = copy_data(dict(args))
        if not self._fits(copied):
            raise self._refusal(describe_errors(self._validator, msgspec.to_builtins(copied, str_keys=True), self.tool))
        return copied

    def _fits(self, args: Any) -> bool:
        try:
            if self._is_valid(args):
                return True
        except ValueError:
            pass  # the schema constrains a date or bytes: validate the JSON form
        try:
            return self._is_valid(msgspec.to_builtins(args, str_keys=True))
        except ValueError:
            return False

    def named_arguments(self, given: Any) -> dict[str, Any]:
        """Return the values as named arguments, without validating them."""
        return self._name(given)

    def _name(self, given: Any) -> dict[str, Any]:
        """Match values to parameters.

        No values mean `{}`. One object is the arguments; but if the tool has one parameter, and the object is valid as
        that parameter and not as the arguments, it is that parameter. Other values are positional, in the order of the
        schema. Trailing nulls (JavaScript's undefined) are dropped where the parameter is optional.
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
            takes = f"at most {len(self._names)} values" if self._names else "no arguments"
            raise self._refusal(f"{len(given)} values were given; it takes {takes}")
        return dict(zip(self._names, given, strict=False))

    def _is_required(self, index: int) -> bool:
        return index < len(self._names) and self._names[index] in self._required

    def _refusal(self, problem: str) -> ToolError:
        message = f"bad arguments for `tools.{self.path}`: {problem}"
        return ToolError(message, code="bad-arguments", tool=self.path, hint=f'see tools.describe("{self.path}")')


class PagedContract(Contract):
    """A tool whose result is fetched page by page: the last value of each call is the cursor of the page to fetch."""

    __slots__ = ("_source",)

    def __init__(
        self, tool: Tool, source: PagedSource, path: str, suspended: str | None = None, labels: ToolLabels | None = None
    ) -> None:
        super().__init__(tool, cast("Source", source), path, suspended, labels)
        self._source = source
        self.call = self._page

    def may_send(self, sent: dict[str, Any]) -> bool:
        """Return whether a call for a page with these arguments can send data out."""
        return super().may_send(sent if sent["cursor"] is not None else sent["args"])

    def accept_named(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Refuse them: the cursor of a page is not one of them."""
        raise self._refusal("those of a page can't be changed")

    def accept(self, values: Any) -> dict[str, Any]:
        """Return the validated arguments and the cursor."""
        *given, cursor = values if isinstance(values, list) and values else [None]
        if not isinstance(cursor, str | None):
            raise self._refusal("the cursor must be the text that the previous page gave")
        return {"args": super().accept(given), "cursor": cursor}

    def named_arguments(self, given: Any) -> dict[str, Any]:
        """Return the arguments of the request for a page, including its offset, number or cursor."""
        if not isinstance(given, list) or not given:
            return self._name(given)
        *values, cursor = given
        args = self._name(values)
        if not isinstance(cursor, str) or not isinstance(self._source, PageDescribingSource):
            return args if cursor is None else {**args, "cursor": cursor}
        try:
            return self._source.page_arguments(self.tool, args, cursor)
        except ToolError:
            return {**args, "cursor": cursor}

    async def _page(self, tool: Tool, sent: dict[str, Any]) -> dict[str, Any]:
        page = await self._source.page(tool, sent["args"], sent["cursor"])
        empty = page.empty or (sent["cursor"] is not None and page.value == [])
        return {"value": page.value, "next": page.next, "empty": empty}


class CallerContract(Contract):
    """A tool of the caller of a run that takes an array of values, or anything: what is sent is in the member `args`."""

    __slots__ = ()

    def accept_slowly(self, values: Any, *, shared: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what `accept` and `named_arguments` return: never the same copy."""
        if holds_more(values, MAX_ARGUMENT_VALUES):
            raise self._refusal(f"they hold more than {MAX_ARGUMENT_VALUES:,} values: pass fewer at a time")
        if self.tool.takes == "array" and is_too_expensive(self.tool.input_schema, {"args": values}):
            raise self._refusal("they take too long to validate: pass fewer values at a time")
        return self.accept(values), self.named_arguments(values)

    def accept(self, values: Any) -> dict[str, Any]:
        """Return the values, copied and, if the tool has a schema, validated."""
        try:
            given = copy_data(list(values))
        except TypeError as error:
            raise self._refusal(f"one of the values {error}") from None
        if self.tool.takes == "anything":
            return {"args": _one_object(given)}
        return super().accept_named({"args": given})

    def accept_named(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments that a person has changed."""
        if self.tool.takes == "anything":
            return {"args": copy_data(dict(args))}
        return super().accept_named(args)

    def named_arguments(self, given: Any) -> dict[str, Any]:
        """Return the values as rules and records show them."""
        shown = given if self.tool.takes == "array" else _one_object(given)
        return shown if isinstance(shown, dict) else {"args": shown}


def _one_object(given: list[Any]) -> Any:
    """Return the one object that was given, or the empty one for nothing; otherwise the values."""
    if not given:
        return {}
    return given[0] if len(given) == 1 and isinstance(given[0], dict) else given


def contract_of(
    tool: Tool, source: Source, path: str, suspended: str | None = None, labels: ToolLabels | None = None
) -> Contract:
    """Return the contract of a tool."""
    kind = Contract if tool.takes == "object" else CallerContract
    return kind(tool, source, path, suspended, labels)


def _compiled(tool: Tool, path: str, cost: SchemaCost) -> jsonschema_rs.Validator:
    engines: list[jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions] = [jsonschema_rs.RegexOptions()]
    if tool.kind == "function":  # its author is trusted with a pattern that may backtrack
        engines.append(jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_REGEX_BACKTRACKS))
    elif cost.problem:
        raise ToolError(f"the schema of `tools.{path}` can't be used: it {cost.problem}", tool=path)
    # The linear-time engine first: the guest chooses the text, and could stall the host through a backtracking pattern.
    problem = ""
    for options in engines:
        try:
            return jsonschema_rs.validator_for(
                dict(tool.input_schema), pattern_options=options, retriever=_refuse, validate_formats=False
            )
        except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
            problem = str(error).splitlines()[0]
    raise ToolError(f"the schema of `tools.{path}` can't be used: {problem}", tool=path)


def _refuse(uri: str) -> Any:
    """Refuse external references: no schema may make the host fetch a URL or read a file."""
    raise ValueError(f"{uri} is outside the schema")
