"""A keyring with one password in it, which lies in the file that CANARY_RING names."""

import os
from pathlib import Path

from keyring.backend import KeyringBackend


class Keyring(KeyringBackend):
    """The keyring of the canaries' world."""

    priority = 1  # type: ignore[assignment]

    def get_password(self, service: str, username: str) -> str | None:
        return Path(os.environ["CANARY_RING"]).read_text() if (service, username) == ("work", "ada") else None

    def set_password(self, service: str, username: str, password: str) -> None:
        raise PermissionError
