"""An OpenAPI definition as a source: each operation is a tool, and a call sends a request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, Literal

import msgspec

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError
from gloveport.large_values import LARGE_BYTES, off_loop_if
from gloveport.policy.credentials import Attachment
from gloveport.policy.egress import Reach, Reply, Request
from gloveport.sources import SourceInfo
from gloveport.sources.compiled_definition import CredentialSlot, ToolHead
from gloveport.sources.context import SourceContext
from gloveport.sources.definition_cache import DefinitionCache, LazySchema
from gloveport.sources.openapi.call import paging, response, retries
from gloveport.sources.openapi.call.base_url import BaseUrl, Variables, choose_base_url, is_below
from gloveport.sources.openapi.call.credentials import SourceCredentials
from gloveport.sources.openapi.call.idempotency import key_parameter, with_key, with_optional_key
from gloveport.sources.openapi.call.paging import CursorSealer
from gloveport.sources.openapi.call.request import RequestBuilder
from gloveport.sources.openapi.operation import Operation, StoredOperation
from gloveport.types import Page, Tool

_STORED = msgspec.json.Decoder(StoredOperation)


@dataclass(frozen=True, slots=True)
class _CallPlan:
    """What all calls of one tool share."""

    builder: RequestBuilder
    base: BaseUrl
    reach: Reach

    @property
    def operation(self) -> Operation:
        return self.builder.operation


class OpenApiSource:
    """The operations of one API under one configuration. `open_openapi` creates it."""

    attributes_errors: Literal[True] = True

    def __init__(
        self, config: SourceConfig, context: SourceContext, cache: DefinitionCache, warnings: Sequence[str] = ()
    ) -> None:
        facts = cache.facts
        self.name = config.name
        self.title: str = facts.get("title", "")
        self._config = config
        self._egress = context.egress
        self._cache_folder = context.cache
        self._cache = cache
        self._servers: Sequence[str] = facts.get("servers", ())
        self._variables: Mapping[str, Variables] = facts.get("variables", {})
        self._credentials = SourceCredentials(
            config.name,
            msgspec.convert(facts.get("slots", ()), tuple[CredentialSlot, ...]),
            context.credentials,
            tuple(config.credentials),
        )
        self._cursors = CursorSealer(context.cache)
        self._plans: dict[str, _CallPlan] = {}
        heads, unused = _selected(config, cache.heads())
        self._tools = tuple(self._tool(head) for head in heads)
        self.warnings = (*warnings, *unused, *self._credentials.warnings(tuple(config.credentials)))
        self.fingerprints = self._fingerprints(heads)
        """The fingerprint of each tool, by address."""
        self._earlier: tuple[str, DefinitionCache | None] = ("", None)

    def source_info(self) -> SourceInfo:
        """Return the facts about the source; `server` is the base URL of its first operation's requests."""
        server = problem = ""
        try:
            server = self._plan(self._tools[0]).base.url if self._tools else ""
        except ToolError as error:
            problem = error.message
        return SourceInfo(self.title, server, problem, self.slots, self.warnings, self.fingerprints, self._cache.digest)

    @property
    def slots(self) -> tuple[CredentialSlot, ...]:
        """The credential slots that its operations may need."""
        return self._credentials.slots

    def _fingerprints(self, heads: Iterable[ToolHead]) -> Mapping[str, str]:
        """Return the fingerprint of each tool.

        It covers the servers and the credential slots: a document that names another server, or sends a credential in
        another place, has changed every tool (D3).
        """
        where: Any = () if self._config.base_url is not None else (self._servers, self._variables)
        common = sha256(msgspec.json.encode((where, self._cache.facts.get("slots", ())))).hexdigest()[:16]
        return {f"{self.name}.{head.address}": f"{head.fingerprint}-{common}" for head in heads}

    def tools(self) -> Sequence[Tool]:
        """Return the operations as tools, ordered by address."""
        return self._tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        """Return the value of the reply; raises ToolError when the reply is an error or there is none."""
        plan = self._plan(tool)
        reply = await self._send(tool, plan, args)
        return await off_loop_if(len(reply.body) > LARGE_BYTES, response.read_value, plan.operation, reply, tool.address)

    def takes_key(self, tool: Tool) -> bool:
        """Return whether an operation takes an idempotency key in a header that the configuration does not set."""
        parameter = key_parameter(self._stored(tool.address.partition(".")[2]).operation)
        return parameter is not None and parameter.name.lower() not in map(str.lower, self._config.headers)

    async def call_with_key(self, tool: Tool, args: dict[str, Any], key: str) -> Any:
        """Return the value of the reply to a request with an idempotency key."""
        return await self.call(tool, with_key(self._plan(tool).operation, args, key))

    async def page(self, tool: Tool, args: dict[str, Any], cursor: str | None) -> Page:
        """Return one page, and the cursor of the next."""
        plan = self._plan(tool)
        used = self._cursors.open(tool.address, cursor) if cursor is not None else None
        if used is not None:
            args = paging.with_paging_argument(plan.operation, args, used)
        reply = await self._send(tool, plan, args, used.url if used else None)
        large = len(reply.body) > LARGE_BYTES
        value = await off_loop_if(large, response.read_value, plan.operation, reply, tool.address)
        if plan.operation.paging and paging.is_repeated(reply, used):
            return Page(paging.without_items(plan.operation.paging, value), empty=True)
        following = paging.next_page(plan.operation, args, reply, value, used=used, hidden=self._credentials.in_query)
        cursor = self._cursors.seal(tool.address, following) if following else None
        return Page(value, cursor, empty=used is not None and paging.has_no_items(plan.operation.paging, value))

    def page_arguments(self, tool: Tool, args: dict[str, Any], cursor: str) -> dict[str, Any]:
        """Return the arguments with the number, offset or cursor of the page; or with the link to it, as `next`."""
        page = self._cursors.open(tool.address, cursor)
        if page.url is not None:
            return {**args, "next": page.url}
        return paging.with_paging_argument(self._plan(tool).operation, args, page)

    def earlier_tool(self, address: str, digest: str) -> Tool | None:
        """Return a tool from the cached definition of this digest; None when that is gone or has no such tool."""
        cache = self._earlier_cache(digest)
        if cache is None:
            return None
        try:
            head = cache.head(address.removeprefix(f"{self.name}."))
            stored = _STORED.decode(cache.definition(head.address))
        except KeyError:
            return None
        taken, given = cache.schema(bytes(stored.input_schema)), cache.schema(bytes(stored.output_schema))
        return Tool(address, head.description, taken, given, kind="openapi", writes=head.writes)

    def _earlier_cache(self, digest: str) -> DefinitionCache | None:
        # After a change of the whole definition, every tool is asked for.
        if self._earlier[0] != digest:
            if self._earlier[1] is not None:
                self._earlier[1].close()
            self._earlier = digest, DefinitionCache.open(self._cache_folder, digest, with_heads=False)
        return self._earlier[1]

    async def close(self) -> None:
        """Close the cached definitions. The connections belong to egress."""
        self._cache.close()
        if self._earlier[1] is not None:
            self._earlier[1].close()

    def _tool(self, head: ToolHead) -> Tool:
        named = head.parameters
        if self._config.headers and (fixed := self._fixed_arguments(head.address, named)):
            named = tuple(name for name in named if name not in fixed)
        return Tool(
            f"{self.name}.{head.address}",
            head.description,
            LazySchema(self._input_schema, head.address),
            LazySchema(self._output_schema, head.address),
            kind="openapi",
            writes=head.writes,
            deprecated=head.deprecated,
            pages=head.pages,
            named=named,
            described=head.described,
        )

    def _input_schema(self, address: str) -> dict[str, Any]:
        stored = self._stored(address)
        schema = dict(with_optional_key(stored.operation, self._cache.schema(bytes(stored.input_schema))))
        if not self._config.headers or not (fixed := self._fixed_arguments(address, schema["properties"])):
            return schema
        if not stored.operation.grouped:
            return _without(schema, fixed)
        return {**schema, "properties": schema["properties"] | {"header": _without(schema["properties"]["header"], fixed)}}

    def _fixed_arguments(self, address: str, names: Iterable[str]) -> set[str]:
        """Return the arguments whose headers the configuration sets, out of all `names` of a tool."""
        headers = {name.lower() for name in self._config.headers}
        if headers.isdisjoint(name.lower() for name in names) and "header" not in names:
            return set()
        parameters = self._stored(address).operation.parameters
        return {one.argument for one in parameters if one.place == "header" and one.name.lower() in headers}

    def _output_schema(self, address: str) -> dict[str, Any]:
        return self._cache.schema(bytes(self._stored(address).output_schema))

    def _stored(self, address: str) -> StoredOperation:
        return _STORED.decode(self._cache.definition(address))

    def _plan(self, tool: Tool) -> _CallPlan:
        plan = self._plans.get(tool.address)
        if plan is None:
            operation = self._stored(tool.address.partition(".")[2]).operation
            try:
                base = choose_base_url(self._config, operation.servers or self._servers, self._variables)
            except SourceError as error:
                raise ToolError(str(error), code=error.code, tool=tool.address, setting=error.hint) from None
            builder = RequestBuilder(operation, base.url, self._config.headers)
            plan = self._plans[tool.address] = _CallPlan(builder, base, self._reach(base.origin))
        return plan

    def _reach(self, origin: str) -> Reach:
        config = self._config
        return Reach(
            origins=frozenset({origin}),
            allow_private=config.allow_private,
            verify_tls=config.verify_tls,
            total_seconds=config.timeout_seconds,
            max_bytes=config.max_response_bytes,
        )

    async def _send(self, tool: Tool, plan: _CallPlan, args: Mapping[str, Any], url: str | None = None) -> Reply:
        attachments = await self._credentials.attach(plan.operation.security, plan.base.origin)
        request = self._request(tool, plan, args, attachments)
        if url is not None:
            if plan.operation.method != "GET" or not is_below(url, plan.base.url):
                message = f"the next page of `tools.{tool.address}` is not below {plan.base.url}"
                raise ToolError(message, code="egress-denied", tool=tool.address)
            request = replace(request, url=url)
        renew = self._credentials.renew if attachments else None
        reply = await retries.send(self._egress, request, plan.reach, attachments, renew, retry=not tool.writes)
        if reply.status == 401 and attachments:
            raise response.to_error(plan.operation, reply, tool.address, self._credentials.refused(attachments))
        return reply

    def _request(self, tool: Tool, plan: _CallPlan, args: Mapping[str, Any], attachments: Iterable[Attachment]) -> Request:
        taken = {(attachment.place, attachment.name.lower()) for attachment in attachments}
        try:
            return plan.builder.build(args, taken)
        except ValueError as error:
            message = f"bad arguments for `tools.{tool.address}`: {error}"
            hint = f'see tools.describe("{tool.address}")'
            raise ToolError(message, code="bad-arguments", tool=tool.address, hint=hint) from None


def _without(schema: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the schema of an object without some of its properties."""
    properties = {name: part for name, part in schema["properties"].items() if name not in names}
    return {
        **schema,
        "properties": properties,
        "required": [name for name in schema.get("required", ()) if name in properties],
    }


def _selected(config: SourceConfig, heads: Sequence[ToolHead]) -> tuple[list[ToolHead], list[str]]:
    """Return the heads that `include` and `exclude` select, and a warning for each pattern that matches none."""
    addresses = [head.address for head in heads]
    unused = [
        f"the source {config.name}: `{pattern}` in {option} matches no operation"
        for option, patterns in (("include", config.include), ("exclude", config.exclude))
        for pattern in patterns
        if not any(fnmatchcase(address, pattern) for address in addresses)
    ]

    def wanted(address: str) -> bool:
        included = not config.include or any(fnmatchcase(address, pattern) for pattern in config.include)
        return included and not any(fnmatchcase(address, pattern) for pattern in config.exclude)

    return [head for head in heads if wanted(head.address)], unused
