"""The environment of a server's command: what the settings give, and the little without which no command runs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from gloveport.config import SourceConfig
from gloveport.errors import SourceError
from gloveport.policy.credentials import Attachment, Credentials
from gloveport.policy.redaction import Redaction

INHERITED = ("PATH", "HOME")
"""All that a command gets of this process's environment: where programs are, and where npx and uvx keep theirs."""

REFERENCE = "env:"


def environment(
    config: SourceConfig, credentials: Credentials, host: Mapping[str, str] = os.environ
) -> tuple[dict[str, str], Redaction]:
    """The variables, and what blacks out the secrets among them.

    `NAME = "env:OTHER"` in the settings is a secret: the source's credential of the slot NAME.
    """
    found = {name: host[name] for name in INHERITED if name in host}
    secrets: list[Attachment] = []
    for name, value in config.env.items():
        if not value.startswith(REFERENCE):
            found[name] = value
            continue
        secret = credentials.find(config.name, name)
        if secret is None:
            variable = value.removeprefix(REFERENCE)
            message = f"the command of the source {config.name} needs {name}, which nobody gave"
            raise SourceError(message, code="credential-missing", hint=f"set {variable}")
        secrets.append(Attachment("header", name, secret, frozenset()))
        found[name] = secret.reveal()
    return found, Redaction(secrets)
