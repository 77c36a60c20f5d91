"""Build a request from an operation and the arguments of a call."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from gloveport.policy.egress import Request
from gloveport.sources.openapi.call import body_encoding, styles
from gloveport.sources.openapi.call.base_url import TEMPLATE_VARIABLE, is_below
from gloveport.sources.openapi.method_override import may_override, query_overrides
from gloveport.sources.openapi.operation import Operation, Parameter, RequestBody

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Without control characters (C0 and C1), line separators and lone surrogates: some software ends a line at each of these.
HEADER_VALUE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*")
# Characters that a definition's own path keeps as they are; its `%` belongs to an encoded character.
PATH_SAFE_CHARS = "/:@!$&'()*+,;=~%?"
# Headers that arguments can't set: OpenAPI says to ignore them, or they belong to the connection.
RESERVED_HEADERS = frozenset(
    {"authorization", "connection", "content-length", "content-type", "cookie", "expect", "host", "keep-alive"}
    | {"proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)


class _RequestDraft(NamedTuple):
    path: dict[str, str]
    query: list[styles.Pair]
    headers: dict[str, tuple[str, str]]
    cookies: list[styles.Pair]


class RequestBuilder:
    """Builds the requests of one operation. What doesn't depend on a call is computed once."""

    def __init__(self, operation: Operation, base: str, fixed: Mapping[str, str]) -> None:
        self.operation = operation
        self.base = base
        path, _, query = operation.path.partition("#")[0].partition("?")
        self._path = TEMPLATE_VARIABLE.split(_encode_static(path if path.startswith("/") else f"/{path}"))
        self._query = [
            pair for pair in TEMPLATE_VARIABLE.sub("{}", _encode_static(query)).split("&") if pair and "{}" not in pair
        ]
        self._fixed = {name.lower(): (name, value) for name, value in fixed.items()}
        self._overridable = may_override(operation)
        self._arguments = {parameter.argument for parameter in operation.parameters}
        accepted = ", ".join((*operation.produces, "*/*;q=0.1") if operation.produces else ("*/*",))
        self._accept = ("Accept", accepted if HEADER_VALUE.fullmatch(accepted) else "*/*")

    def build(self, args: Mapping[str, Any], taken: Collection[tuple[str, str]] = ()) -> Request:
        """Return the request; raises ValueError for arguments that it can't carry.

        `taken` are the places and lower-case names that carry credentials: no argument can set them.
        """
        draft = _RequestDraft({}, [], {"accept": self._accept}, [])
        for parameter in self.operation.parameters:
            group = args.get(parameter.place, {}) if self.operation.grouped else args
            value = group.get(parameter.argument)
            if value is None:
                continue
            try:
                _set_parameter(draft, parameter, value)
            except ValueError as error:
                raise ValueError(f"`{parameter.argument}`: {error}") from None
        body = self._body(args)
        if body is not None:
            draft.headers["content-type"] = ("Content-Type", body.content_type)
        if cookies := "; ".join(f"{name}={text}" for name, text in draft.cookies if ("cookie", name.lower()) not in taken):
            draft.headers["cookie"] = ("Cookie", cookies)
        headers = {name: header for name, header in draft.headers.items() if ("header", name) not in taken} | self._fixed
        url = self._url(draft, taken)
        if not self._overridable and query_overrides(url):
            # A free-form argument can have any name, but policy allowed the call because of its method.
            raise ValueError("a query parameter can't ask for another method")
        return Request(self.operation.method, url, tuple(headers.values()), body.data if body else None)

    def _url(self, draft: _RequestDraft, taken: Collection[tuple[str, str]]) -> str:
        pieces = list(self._path)
        for index in range(1, len(pieces), 2):
            if pieces[index] not in draft.path:
                raise ValueError(f"the path {self.operation.path} needs `{pieces[index]}`")
            pieces[index] = draft.path[pieces[index]]
        url = self.base + "".join(pieces)
        query = [f"{name}={text}" for name, text in draft.query if ("query", name.lower()) not in taken]
        if query or self._query:
            url += "?" + "&".join((*self._query, *query))
        if not is_below(url, self.base):
            raise ValueError("a path parameter can't contain a segment such as `..`")
        return url

    def _body(self, args: Mapping[str, Any]) -> body_encoding.EncodedBody | None:
        body = self.operation.body
        if body is None:
            return None
        given, value = self._body_value(body, args)
        if not given:
            return None
        content, *others = body.contents
        if others:
            content = next((other for other in others if other.media_type == args.get("content_type")), content)
        try:
            return body_encoding.encode_body(content, value)
        except ValueError as error:
            raise ValueError(f"the body ({content.media_type}): {error}") from None

    def _body_value(self, body: RequestBody, args: Mapping[str, Any]) -> tuple[bool, Any]:
        name = "body" if self.operation.grouped else body.argument
        if name is not None:
            return name in args, args.get(name)
        own = {"content_type"} if len(body.contents) > 1 else set()
        rest = {key: value for key, value in args.items() if key not in self._arguments and key not in own}
        return bool(rest) or body.required, rest


def _set_parameter(draft: _RequestDraft, parameter: Parameter, value: Any) -> None:
    name, style, explode = parameter.name, parameter.style, parameter.explode
    if parameter.content is not None:
        json = "json" in parameter.content
        value, style = (body_encoding.encode_json(value).decode() if json else styles.text_of(value)), "content"
    if parameter.place == "path":
        text = styles.path_text(name, value, style, explode)
        if not text:
            raise ValueError("a path parameter can't be empty")
        draft.path[_encode_static(name)] = text
    elif parameter.place == "query":
        encode = styles.encode_reserved if parameter.allow_reserved else styles.encode
        draft.query.extend(styles.name_value_pairs(name, value, style, explode, encode))
    elif parameter.place == "cookie":
        draft.cookies.extend(styles.name_value_pairs(name, value, style, explode))
    elif name.lower() not in RESERVED_HEADERS:
        draft.headers[name.lower()] = (name, _header_value(name, styles.header_text(value, explode)))


def _header_value(name: str, text: str) -> str:
    if not HEADER_NAME.fullmatch(name):
        raise ValueError("its name can't be a header name")
    if not HEADER_VALUE.fullmatch(text):
        raise ValueError("a header can't contain control characters")
    return text


def _encode_static(text: str) -> str:
    """Percent-encode the fixed text of a template where the definition did not."""
    return quote(text, safe=PATH_SAFE_CHARS + "{}")
