"""What a source is given to reach the world with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gloveport.policy.credentials import Credentials

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress


@dataclass(frozen=True, slots=True)
class Outside:
    """The one HTTP client, the secrets, and a folder of this user in which compiled definitions are kept."""

    egress: Egress
    credentials: Credentials
    cache: Path
