"""From a source's URL to its authorization server: RFC 9728, then RFC 8414 or OpenID Connect."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from gloveport import urls
from gloveport.errors import ToolError
from gloveport.policy.egress import Reach, Reply, Request

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress

MAX_METADATA_BYTES = 256 * 1024
METADATA_SECONDS = 20
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
_CHALLENGE = re.compile(r'resource_metadata="([^"\\]{1,2000})"')
_CHALLENGED_SCOPE = re.compile(r'\bscope="([^"\\]{1,2000})"')
_SCOPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/~+*-]{0,199}")
MAX_SCOPES = 50
OFFLINE_ACCESS = "offline_access"


class NoServerMetadata(ToolError):
    """A service does not describe its authorization server."""

    code = "auth-required"


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """An authorization server, as its metadata describe it. Every URL is https, or on loopback."""

    issuer: str
    token_endpoint: str
    authorization_endpoint: str = ""
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    device_endpoint: str = ""
    scopes: tuple[str, ...] = ()
    offline_access: bool = False
    auth_methods: tuple[str, ...] = ()
    supports_pkce: bool = False
    returns_issuer: bool = False
    takes_metadata_documents: bool = False
    resource: str = ""

    @property
    def origins(self) -> frozenset[str]:
        """The origins that requests for tokens go to."""
        used = (self.token_endpoint, self.registration_endpoint, self.revocation_endpoint, self.device_endpoint)
        return frozenset(urls.parse(url).origin for url in used if url)


async def discover(
    egress: Egress, resource_url: str, *, allow_private: bool, issuer: str = "", probe: Request | None = None
) -> AuthorizationServer:
    """Return the authorization server of the service at a URL, or the one of an issuer that a person named.

    `probe` is the request that the service refuses without a token, and whose refusal may name its metadata: by default
    a GET. Raise ToolError `auth-required` when there is none, or when its metadata are for somebody else.
    Tokens are asked for a resource that the service names, and for every MCP server: to a server that knows no resource
    indicators, or not this one, another service's would be an error.
    """
    reach = Reach(
        allow_private=allow_private, total_seconds=METADATA_SECONDS, max_bytes=MAX_METADATA_BYTES, max_redirects=0
    )
    at = urls.parse(resource_url)
    resource, scopes = f"{at.origin}{at.path}" if probe else "", ()
    if not issuer:
        found = await _protected_resource(egress, at, reach, probe or Request("GET", f"{at.origin}{at.path}", follow=False))
        if found is not None:
            resource, issuer, scopes = found
    metadata = await server_metadata(egress, issuer or at.origin, reach)
    return _server(metadata, issuer or at.origin, resource, scopes)


def mcp_probe(url: str) -> Request:
    """Return the request that asks an MCP server for its tools: it may answer no GET, and anybody who initializes."""
    headers = (("content-type", "application/json"), ("accept", "application/json, text/event-stream"))
    return Request("POST", url, headers, b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}')


def declared_server(authorization_url: str, token_url: str) -> AuthorizationServer:
    """Return the authorization server that a definition names. Without metadata, only a person can vouch for it."""
    token = safe_url(token_url, "the token URL of the definition")
    page = safe_url(authorization_url, "the authorization URL of the definition") if authorization_url else ""
    return AuthorizationServer(urls.parse(token).origin, token, page)


def declared_issuer(discovery_url: str) -> str:
    """Return the issuer whose description a definition names (OpenID Connect), for `discover`, which checks it."""
    url = safe_url(discovery_url, "the OpenID Connect URL of the definition")
    return url.removesuffix("/.well-known/openid-configuration")


def safe_url(text: Any, what: str) -> str:
    """Return a URL that may be opened or requested: https, or http on loopback (M7). Raise ToolError `auth-required`."""
    if not isinstance(text, str):
        raise _refused(f"{what} is not a URL")
    try:
        url = urls.parse(text)
    except ToolError:
        raise _refused(f"{what} is not a plain https URL") from None
    if url.scheme != "https" and url.host not in LOOPBACK_HOSTS:
        raise _refused(f"{what} is not an https URL")
    return str(url)


def challenged_scopes(challenge: str) -> tuple[str, ...]:
    """Return the scopes that a `WWW-Authenticate` header names. Only plain ones: a person gets them in a command."""
    found = _CHALLENGED_SCOPE.search(challenge)
    return tuple(filter(_SCOPE.fullmatch, found[1].split(" ")[:MAX_SCOPES])) if found else ()


async def _protected_resource(
    egress: Egress, at: urls.Url, reach: Reach, probe: Request
) -> tuple[str, str, tuple[str, ...]] | None:
    own = Reach(frozenset({at.origin}), reach.allow_private, True, 10, reach.total_seconds, reach.max_bytes, 0)
    path = "" if at.path == "/" else at.path
    places = [f"{at.origin}/.well-known/oauth-protected-resource{each}" for each in dict.fromkeys((path, ""))]
    reply = await _answer(egress, probe, own)
    challenge = reply.headers.get("www-authenticate", "") if reply else ""
    if challenged := _CHALLENGE.search(challenge):
        # Another origin could name its own authorization server: egress refuses to ask it.
        places.insert(0, safe_url(challenged[1], "the URL of the resource's metadata"))
    for place in places:
        document = await fetch_document(egress, place, own)
        if document is None:
            continue
        resource = document.get("resource")
        if not isinstance(resource, str) or not _covers(resource, at):
            raise _refused(f"the metadata of {at.origin} are for another resource")
        servers = _texts(document.get("authorization_servers"))
        if servers:
            scopes = challenged_scopes(challenge) or _texts(document.get("scopes_supported"))
            return resource, safe_url(servers[0], "the authorization server").rstrip("/"), scopes
    return None


def _covers(resource: str, at: urls.Url) -> bool:
    try:
        named = urls.parse(resource)
    except ToolError:
        return False
    below = at.path == named.path or at.path.startswith(named.path.rstrip("/") + "/")
    return named.origin == at.origin and below and not named.query


async def server_metadata(egress: Egress, issuer: str, reach: Reach) -> dict[str, Any]:
    """Return what an issuer publishes about itself, unchecked; raise ToolError `auth-required` when there is nothing."""
    at = urls.parse(safe_url(issuer, "the issuer"))
    own = Reach(frozenset({at.origin}), reach.allow_private, True, 10, reach.total_seconds, reach.max_bytes, 0)
    path = at.path.rstrip("/")
    known = ("oauth-authorization-server", "openid-configuration")
    places = [f"{at.origin}/.well-known/{each}{path}" for each in known]
    places.append(f"{at.origin}{path}/.well-known/openid-configuration")
    for place in dict.fromkeys(places):
        if (document := await fetch_document(egress, place, own)) is not None:
            return document
    message = f"{at.origin} does not describe an authorization server"
    raise NoServerMetadata(message, setting="name its issuer with --issuer, or use `gloveport auth add`")


async def fetch_document(egress: Egress, url: str, reach: Reach) -> dict[str, Any] | None:
    """Return the JSON object at a URL; None when there is none."""
    reply = await _answer(egress, Request("GET", url, (("accept", "application/json"),), follow=False), reach)
    if reply is None or reply.status != 200:
        return None
    try:
        found = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


async def _answer(egress: Egress, request: Request, reach: Reach) -> Reply | None:
    """Return a reply, or None for one too large. Many services answer to every path with a page, or redirect to one."""
    try:
        return await egress.send(request, reach)
    except ToolError as error:
        if error.code != "reply-too-large":
            raise
        return None


def _server(metadata: dict[str, Any], issuer: str, resource: str, scopes: tuple[str, ...]) -> AuthorizationServer:
    said = metadata.get("issuer")
    if not isinstance(said, str) or said.rstrip("/") != issuer.rstrip("/"):
        raise _refused(f"the metadata of {issuer} are those of another issuer")  # mix-up (M9)
    names = {
        "token_endpoint": "token_endpoint",
        "authorization_endpoint": "authorization_endpoint",
        "registration_endpoint": "registration_endpoint",
        "revocation_endpoint": "revocation_endpoint",
        "device_endpoint": "device_authorization_endpoint",
    }
    found = {
        field: safe_url(metadata[name], f"the {name} of {issuer}") for field, name in names.items() if metadata.get(name)
    }
    if "token_endpoint" not in found:
        raise _refused(f"{issuer} has no token endpoint")
    methods = _texts(metadata.get("code_challenge_methods_supported"))
    if methods and "S256" not in methods:
        raise _refused(f"{issuer} does not support PKCE with S256")
    return AuthorizationServer(
        said,
        **found,
        scopes=scopes,
        offline_access=OFFLINE_ACCESS in _texts(metadata.get("scopes_supported")),
        auth_methods=_texts(metadata.get("token_endpoint_auth_methods_supported")),
        supports_pkce="S256" in methods,
        returns_issuer=metadata.get("authorization_response_iss_parameter_supported") is True,
        takes_metadata_documents=metadata.get("client_id_metadata_document_supported") is True,
        resource=resource,
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value[:100] if isinstance(item, str)) if isinstance(value, list) else ()


def _refused(problem: str) -> ToolError:
    return ToolError(f"this authorization server can't be used: {problem}", code="auth-required")
