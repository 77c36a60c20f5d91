"""What a port has at each extension point: the built-ins, and what its plugins add."""

from __future__ import annotations

from dataclasses import dataclass

from gloveport.plugins.extension_point import ExtensionPoint
from gloveport.policy.credentials.providers import PROVIDERS, CredentialProvider
from gloveport.sandbox.engines.engine import Engine
from gloveport.sandbox.engines.registry import ENGINES
from gloveport.sources.kinds import KINDS, SourceKind


@dataclass(frozen=True, slots=True)
class Extensions:
    """The kinds of sources, the providers of credentials and the engines of a port."""

    kinds: ExtensionPoint[SourceKind] = KINDS
    providers: ExtensionPoint[CredentialProvider] = PROVIDERS
    engines: ExtensionPoint[Engine] = ENGINES


BUILT_IN = Extensions()
"""Those of a port without plugins."""
