"""Takes the `traceparent` of a request as the parent of what it starts. Loaded only where traces are wanted."""

from __future__ import annotations

from opentelemetry import context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Receive, Scope, Send

HEADERS = (b"traceparent", b"tracestate")


class TraceParents:
    """An ASGI application in front of another one, behind the guard. A malformed header is ignored."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._format = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request in the context that its headers name."""
        found = {name.decode(): value.decode("latin-1") for name, value in scope.get("headers", ()) if name in HEADERS}
        if "traceparent" not in found:
            await self._app(scope, receive, send)
            return
        token = context.attach(self._format.extract(found))
        try:
            await self._app(scope, receive, send)
        finally:
            context.detach(token)
