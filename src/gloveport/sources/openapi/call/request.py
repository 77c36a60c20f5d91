"""Build a request from an operation and the arguments of a call."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from gloveport.policy.egress import Request
from gloveport.sources.openapi.call import body_encoding, media_choice, styles
from gloveport.sources.openapi.call.base_url import TEMPLATE_VARIABLE, is_below
from gloveport.sources.openapi.method_override import may_override, query_overrides
from gloveport.sources.openapi.operation import MediaContent, Operation, Parameter, RequestBody
from gloveport.sources.openapi.reserved_headers import RESERVED_HEADERS

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Without control characters (C0 and C1), line separators and lone surrogates: some software ends a line at each of these.
HEADER_VALUE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*")
# Characters that a definition's own path keeps as they are; its `%` belongs to an encoded character.
PLACES = ("path", "query", "header", "cookie")
PATH_SAFE_CHARS = "/:@!$&'()*+,;=~%?"


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
        self._query = [TEMPLATE_VARIABLE.split(pair) for pair in _encode_static(query).split("&") if pair]
        self._fixed = {name.lower(): (name, value) for name, value in fixed.items()}
        self._overridable = may_override(operation)
        body = operation.body
        self._groups = {place: {one.argument for one in operation.parameters if one.place == place} for place in PLACES}
        self._arguments = {one.argument for one in operation.parameters}
        self._takes_others = body is not None and body.argument is None and not operation.grouped
        self._known = {place for place in PLACES if self._groups[place]} if operation.grouped else set(self._arguments)
        if body:
            self._known |= {body.argument or "body", *(("content_type",) if len(body.contents) > 1 else ())}
        accepted = ", ".join((*operation.produces, "*/*;q=0.1") if operation.produces else ("*/*",))
        self._accept = ("Accept", accepted if HEADER_VALUE.fullmatch(accepted) else "*/*")

    def build(self, args: Mapping[str, Any], taken: Collection[tuple[str, str]] = ()) -> Request:
        """Return the request; raises ValueError for arguments that it can't carry.

        `taken` are the places and lower-case names that carry credentials: no argument can set them.
        """
        self._refuse_unknown(args)
        draft = _RequestDraft({}, [], {}, [])
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
        url = self._url(draft, taken)
        headers = self._headers(draft, taken)
        if body is not None:
            headers.setdefault("content-type", ("Content-Type", body.content_type))
        if not self._overridable and query_overrides(url):
            # A free-form argument can have any name, but policy allowed the call because of its method.
            raise ValueError("a query parameter can't ask for another method")
        return Request(self.operation.method, url, tuple(headers.values()), body.data if body else None)

    def _refuse_unknown(self, args: Mapping[str, Any]) -> None:
        """Raise ValueError for an argument that no part of the request would hold: it must not vanish."""
        unknown = [] if self._takes_others else [name for name in args if name not in self._known]
        if self.operation.grouped:
            unknown += [name for place in PLACES for name in args.get(place, ()) if name not in self._groups[place]]
        if unknown:
            raise ValueError(f"it has no argument `{unknown[0]}`")

    def _headers(self, draft: _RequestDraft, taken: Collection[tuple[str, str]]) -> dict[str, tuple[str, str]]:
        headers = {"accept": self._accept} | draft.headers
        for name, _ in draft.cookies:
            _refuse_taken("cookie", name, taken)
        for name in draft.headers:
            _refuse_taken("header", name, taken)
        if draft.cookies:
            headers["cookie"] = ("Cookie", "; ".join(f"{name}={text}" for name, text in draft.cookies))
        for name in headers.keys() & self._fixed.keys() - {"accept"}:
            raise ValueError(f"the configuration of the source sets the header `{name}`, so no argument can")
        return headers | self._fixed

    def _url(self, draft: _RequestDraft, taken: Collection[tuple[str, str]]) -> str:
        for name in self._path[1::2]:
            if name not in draft.path:
                raise ValueError(f"the path {self.operation.path} needs `{name}`")
        url = self.base + _filled(self._path, draft.path)
        # A name in the template's query that is no parameter in the path is one in the query, and sent as such.
        query: list[str] = []
        sent = set(self._path[1::2])
        for pieces in self._query:
            if draft.path.keys() >= set(pieces[1::2]):
                query.append(_filled(pieces, draft.path))
                sent |= set(pieces[1::2])
                if len(pieces) > 1:
                    _refuse_taken("query", query[-1].partition("=")[0], taken)
        if vanished := draft.path.keys() - sent:
            raise ValueError(f"the path {self.operation.path} has no place for `{min(vanished)}`")
        for name, text in draft.query:
            _refuse_taken("query", name, taken)
            query.append(f"{name}={text}")
        if query:
            url += "?" + "&".join(query)
        if not is_below(url, self.base):
            raise ValueError("a path parameter can't contain a segment such as `..`")
        return url

    def _body(self, args: Mapping[str, Any]) -> body_encoding.EncodedBody | None:
        body = self.operation.body
        if body is None:
            return None
        given, value = self._body_value(body, args)
        wanted = args.get("content_type") if len(body.contents) > 1 else None
        if not given:
            if wanted is not None:
                raise ValueError("`content_type` needs a body")
            return None
        content = self._content(body, value, wanted)
        try:
            return body_encoding.encode_body(content, value)
        except ValueError as error:
            raise ValueError(f"the body ({content.media_type}): {error}") from None

    def _content(self, body: RequestBody, value: Any, wanted: str | None) -> MediaContent:
        if wanted is None:
            return body.contents[0] if len(body.contents) == 1 else media_choice.fitting(body.contents, value)
        found = next((content for content in body.contents if content.media_type == wanted), None)
        if found is None:
            raise ValueError(f"`content_type`: the body can't be sent as {wanted[:80]!r}")
        return found

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
    elif name.lower() in RESERVED_HEADERS:
        raise ValueError("no argument can set this header")
    else:
        draft.headers[name.lower()] = (name, _header_value(name, styles.header_text(value, explode)))


def _filled(pieces: Sequence[str], values: Mapping[str, str]) -> str:
    """Return the text of a template that was split at its variables."""
    return "".join(values[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def _refuse_taken(place: str, name: str, taken: Collection[tuple[str, str]]) -> None:
    if (place, unquote(name).lower()) in taken:
        raise ValueError(f"`{unquote(name)}` is sent as a credential, so no argument can set it")


def _header_value(name: str, text: str) -> str:
    if not HEADER_NAME.fullmatch(name):
        raise ValueError("its name can't be a header name")
    if not HEADER_VALUE.fullmatch(text):
        raise ValueError("a header can't contain control characters")
    return text


def _encode_static(text: str) -> str:
    """Percent-encode the fixed text of a template where the definition did not."""
    return quote(text, safe=PATH_SAFE_CHARS + "{}")
