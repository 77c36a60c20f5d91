"""What a source is given to reach the outside world with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gloveport.policy.credentials import Credentials

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The HTTP client, the credentials, and the user's folder for compiled definitions."""

    egress: Egress
    credentials: Credentials
    cache: Path
