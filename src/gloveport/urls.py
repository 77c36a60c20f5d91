"""The only URL parser. The checks, the connection and the request on the wire all use its parts (N8)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address

from gloveport.errors import ToolError

# The grammar accepts only what every parser reads the same way. It has no userinfo, backslashes, spaces, control
# characters, escapes or non-ASCII digits in a host, so two parsers can't disagree.
_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?))"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[!-\"$->@-\[\]-~]*)?"
    r"(?P<query>\?[!-\"$-\[\]-~]*)?"
    r"(?:\#[!-~]*)?",
    re.IGNORECASE | re.ASCII,
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE | re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_URL_CHARS = 64 * 1024


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL. `host` is lower-case and without brackets; `target` is the path and query as they are sent."""

    scheme: str
    host: str
    port: int
    path: str
    query: str

    @property
    def origin(self) -> str:
        """`scheme://host[:port]`, without a default port."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = self.bracketed_host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def bracketed_host(self) -> str:
        """The host as a URL has it: an IPv6 address in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def target(self) -> str:
        """The target in the request line."""
        return self.path + self.query

    def __str__(self) -> str:
        return self.origin + self.target


def parse(text: str) -> Url:
    """Return the parts of an absolute URL without its fragment. Raise ToolError `egress-denied` for an unusual one."""
    match = _URL.fullmatch(text) if len(text) <= _MAX_URL_CHARS else None
    if match is None:
        raise _refused(_reason(text))
    scheme = match["scheme"].lower()
    port = int(match["port"] or _DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        raise _refused("its port is out of range")
    host = _name(match["name"].lower()) if match["name"] else _six(match["six"])
    return Url(scheme, host, port, match["path"] or "/", match["query"] or "")


def join(base: Url, reference: str) -> Url:
    """Return the target of a redirect. It refuses the same as `parse`."""
    if _SCHEME.match(reference):
        return parse(reference)
    if reference.startswith("//"):
        return parse(f"{base.scheme}:{reference}")
    if reference.startswith("/"):
        return parse(base.origin + reference)
    if not reference or reference[0] in "?#":
        return parse(base.origin + base.path + (reference if reference.startswith("?") else base.query))
    joined = parse(base.origin + base.path.rpartition("/")[0] + "/" + reference)
    return Url(joined.scheme, joined.host, joined.port, _without_dots(joined.path), joined.query)


def origin_of(text: str) -> str:
    """Return the origin of a URL; of one that can't be used, a text that is no origin."""
    try:
        return parse(text).origin
    except ToolError:
        return "a URL that can't be used"


def shown(text: str) -> str:
    """Return a URL as a message may show it: without its query, and not at all where it may hold a password."""
    try:
        url = parse(text)
    except ToolError:
        return "a URL that can't be used"
    return url.origin + url.path + ("?…" if url.query else "")


def _name(host: str) -> str:
    if ".." in host or len(host) > 253:
        raise _refused("its host is not a host name")
    return host


def _six(host: str) -> str:
    try:
        return str(IPv6Address(host))
    except AddressValueError:
        raise _refused("its host is not an IPv6 address") from None


def _without_dots(path: str) -> str:
    kept: list[str] = []
    steps = path.split("/")[1:]
    for step in steps:
        if step == "..":
            del kept[-1:]
        elif step != ".":
            kept.append(step)
    return "/" + "/".join(kept + [""] * (steps[-1] in {".", ".."}))


def _reason(text: str) -> str:
    """Return why the grammar refuses a text, for the person who wrote it."""
    if len(text) > _MAX_URL_CHARS:
        return f"it is longer than {_MAX_URL_CHARS} characters"
    if not re.match(r"https?://", text, re.IGNORECASE):
        return "it does not begin with http:// or https://"
    if re.search(r"[\x00-\x20\x7f\\]", text):
        return "it contains a space, a control character or a backslash"
    if not text.isascii():
        return "it contains characters that are not encoded (in a host as xn--…, elsewhere as %XX)"
    if "@" in re.split(r"[/?#]", text.partition("://")[2])[0]:
        return "it contains a user or password"
    return "its host or port can't be read"


def _refused(reason: str) -> ToolError:
    # The text is not shown: a URL that is refused because of a password would show it.
    return ToolError(f"a URL was refused: {reason}", code="egress-denied")
