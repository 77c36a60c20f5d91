"""What a user configured: the values of `gloveport.toml`, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SourceKind = Literal["openapi", "graphql", "mcp", "functions"]


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """One `[sources.NAME]`: what it is, where its definition is, and what may be reached for it.

    `location` is a URL, a file, or for an MCP server on stdio its argv. `base_url` overrides the definition's servers.
    `include` and `exclude` are patterns over addresses without the source's name (`issues.*`). `credentials` maps a slot to
    where its secret comes from (`env:GITHUB_TOKEN`). `variables` fill server variables, `env` is an MCP command's whole
    environment. Loopback and private addresses are reached only with `allow_private`. `trust_annotations`
    lets an MCP server say itself which of its tools only read. `settings` names the file that this came from; it is empty
    for what the user wrote in code or in his own file.
    """

    name: str
    kind: SourceKind
    location: str | tuple[str, ...]
    base_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    credentials: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    allow_private: bool = False
    verify_tls: bool = True
    timeout_seconds: float = 60
    max_response_bytes: int = 32 * 1024 * 1024
    trust_annotations: bool = False
    settings: str = ""
