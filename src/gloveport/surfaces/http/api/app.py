"""Serves the endpoints: checks the role, the query and the body of each request, and shapes every error alike."""

from __future__ import annotations

import logging
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import jsonschema_rs
import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from gloveport.bridge.validation_errors import describe_errors
from gloveport.config import ServeConfig
from gloveport.errors import CODES, GloveportError, OptionError, http_status
from gloveport.host.port import Gloveport
from gloveport.host.sandbox_host import SANDBOX_PATH
from gloveport.large_values import is_large, off_loop_if
from gloveport.surfaces.activity_log import OnActivity
from gloveport.surfaces.documents import problem_document
from gloveport.surfaces.http import CALLER_SCOPE_KEY
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.api.account import AccountApi
from gloveport.surfaces.http.api.approvals import ApprovalsApi
from gloveport.surfaces.http.api.callback import Callbacks
from gloveport.surfaces.http.api.catalog import CatalogApi
from gloveport.surfaces.http.api.decisions.policies import PoliciesApi
from gloveport.surfaces.http.api.endpoint import ApiCall, ApiEndpoint, ApiReply, forbidden, json_bytes
from gloveport.surfaces.http.api.host import HostApi
from gloveport.surfaces.http.api.openapi import openapi_endpoint
from gloveport.surfaces.http.api.past_runs import PastRunsApi
from gloveport.surfaces.http.api.programs.programs import ProgramsApi
from gloveport.surfaces.http.api.records import RecordsApi
from gloveport.surfaces.http.api.runs import RunsApi
from gloveport.surfaces.http.api.sessions import SessionsApi
from gloveport.surfaces.http.api.sources.clients import ClientsApi
from gloveport.surfaces.http.api.sources.sign_ins import SignInsApi
from gloveport.surfaces.http.api.sources.sources import SourcesApi
from gloveport.surfaces.http.api.store_reader import StoreReader
from gloveport.surfaces.http.metrics import Metrics
from gloveport.surfaces.http.sandbox import SandboxHost
from gloveport.surfaces.http.token import Caller
from gloveport.surfaces.web.sessions import WebSessions
from gloveport.types import Tool

logger = logging.getLogger("gloveport")

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def routes(endpoints: Iterable[ApiEndpoint]) -> list[BaseRoute]:
    """Return the routes of the endpoints, one for each path."""
    by_path: dict[str, list[_Served]] = defaultdict(list)
    for endpoint in endpoints:
        by_path[endpoint.path].append(_Served(endpoint))
    return [
        Route(path, partial(_serve, {one.endpoint.method: one for one in served}), methods=_METHODS)
        for path, served in by_path.items()
    ]


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


class _Served:
    """An endpoint with its schemas compiled."""

    def __init__(self, endpoint: ApiEndpoint) -> None:
        self.endpoint = endpoint
        self._body = jsonschema_rs.validator_for(dict(endpoint.body)) if endpoint.body is not None else None

    async def answer(self, request: Request) -> Response:
        caller: Caller = request.scope[CALLER_SCOPE_KEY]
        endpoint = self.endpoint
        if caller.role not in endpoint.roles:
            raise forbidden(f"the role {caller.role!r} may not {endpoint.method} {endpoint.path}")
        document, size = await self._document(request)
        call = ApiCall(caller, request.path_params, self._query(request), document, request.headers, size)
        reply = await endpoint.handler(call)
        if not isinstance(reply, ApiReply):
            return reply
        if reply.status == 304:
            response = Response(None, 304, HEADERS)
        else:
            response = await off_loop_if(is_large(reply.document), to_response, reply.document, reply.status)
        if reply.version is not None:
            response.headers["ETag"] = f'"{reply.version}"'
        return response

    def _query(self, request: Request) -> dict[str, Any]:
        known, found = self.endpoint.query, dict[str, Any]()
        for name, text in request.query_params.multi_items():
            if name not in known or name in found:
                problem = "is repeated" if name in found else f"is not one of {', '.join(known) or 'none'}"
                raise OptionError(f"the query parameter {name[:40]!r} {problem}", code="bad-request")
            found[name] = _typed(name, text, known[name])
        if missing := [name for name in self.endpoint.needs if name not in found]:
            raise OptionError(f"the query parameter `{missing[0]}` is missing", code="bad-request")
        return found

    async def _document(self, request: Request) -> tuple[Mapping[str, Any], int]:
        """Return the body, and its size."""
        if self._body is None:
            return {}, 0
        # The guard has checked the bounds of the text, and that it is an object.
        body = await request.body()
        document = orjson.loads(body or b"{}")
        if not self._body.is_valid(document):
            tool = Tool("api.body", "", dict(self.endpoint.body or {}))
            raise OptionError(describe_errors(self._body, document, tool), code="bad-request")
        members = (self.endpoint.body or {}).get("properties", {})
        whole = {name: int(value) for name, value in document.items() if members.get(name, {}).get("type") == "integer"}
        return {**document, **whole}, len(body)  # JSON Schema takes 37.0 for an integer, Python takes it for none


def _typed(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    """Return the value of a query parameter; raise OptionError if the schema does not take it."""
    value: Any = text
    if schema.get("type") == "integer" and text.isascii() and text.isdecimal() and len(text) < 16:
        value = int(text)
    elif schema.get("type") == "boolean" and text in ("true", "false"):
        value = text == "true"
    if not jsonschema_rs.is_valid(dict(schema), value):
        takes = schema.get("enum") or schema.get("description") or schema.get("type")
        raise OptionError(f"the query parameter {name!r} takes {takes}, not {text[:40]!r}", code="bad-request")
    return value


async def _serve(served: Mapping[str, _Served], request: Request) -> Response:
    found = served.get(request.method)
    try:
        if found is None:
            raise GloveportError(
                f"this path has no {request.method}", code="wrong-method", hint=f"it has {', '.join(served)}"
            )
        return await found.answer(request)
    except GloveportError as error:
        response = to_response(problem_document(error), http_status(error.code))
    except Exception as error:  # the outer edge: report a defect of ours without host details
        reference = secrets.token_hex(4)
        logger.error("%s %s: internal error %s", request.method, request.url.path, reference, exc_info=error)
        response = to_response(
            problem_document(GloveportError(f"internal error in Gloveport (reference {reference})")), 500
        )
    if found is None:
        response.headers["Allow"] = ", ".join(served)
    if response.status_code in (429, 503):
        response.headers["Retry-After"] = "2"
    return response


def to_response(document: Mapping[str, Any], status: int = 200) -> Response:
    """Return a JSON document as a response."""
    return Response(json_bytes(document), status, HEADERS, "application/json")


async def nowhere(request: Request, problem: Exception) -> Response:
    """Return the answer for a path that is none."""
    error = GloveportError("there is nothing at this path", code="not-found", hint=CODES["not-found"].fix)
    return to_response(problem_document(error), 404)


class Api:
    """The API of one port: its endpoints, and what they share."""

    def __init__(
        self,
        port: Gloveport,
        admission: Admission,
        settings: ServeConfig,
        sessions: WebSessions,
        *,
        on_activity: OnActivity | None,
        on_token_change: Callable[[], None],
    ) -> None:
        self._store = StoreReader(port.store_path)
        self._callbacks = Callbacks(settings)
        self._runs = RunsApi(port, admission, self._store, self._callbacks, on_activity)
        metrics = Metrics(port, admission, self._store)
        records = RecordsApi(port, self._store, on_token_change)
        parts = (self._runs, CatalogApi(port), ApprovalsApi(self._store), records, metrics)
        parts = (*parts, SessionsApi(port, self._store, self._runs), AccountApi(port, sessions))
        parts = (*parts, PastRunsApi(port, admission, self._store, self._runs))
        self._sign_ins = SignInsApi(port)
        parts = (*parts, ProgramsApi(port, admission), PoliciesApi(port))
        parts = (*parts, SourcesApi(port), self._sign_ins, ClientsApi(port))
        endpoints = [endpoint for part in parts for endpoint in part.endpoints]
        self.endpoints = [*endpoints, openapi_endpoint(endpoints)]
        self._host = HostApi(port, admission, self._runs)
        lending = WebSocketRoute(SANDBOX_PATH, SandboxHost(port, admission).serve)
        self.routes = [*routes(self.endpoints), *self._host.routes, lending]

    async def end_runs(self) -> None:
        """End the runs that callers wait for."""
        await self._runs.close()

    async def close(self) -> None:
        """End the runs that callers wait for, and close the store."""
        await self.end_runs()
        await self._callbacks.close()
        await self._sign_ins.close()
        await self._store.close()
