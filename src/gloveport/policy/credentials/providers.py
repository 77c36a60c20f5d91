"""Providers: each reads the secrets of one scheme of references, such as `keyring:SERVICE/USER`.

A plugin adds one with its hook `credentials`, named as its scheme.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from gloveport.errors import ToolError
from gloveport.plugins.extension_point import ExtensionPoint
from gloveport.sealing import keyring_module

COMMAND_SECONDS = 30.0
MAX_SECRET_BYTES = 64 * 1024


class CredentialProvider(Protocol):
    """Reads the secrets of one scheme of references."""

    async def read(self, name: str) -> str | None:
        """Return the secret that the part of a reference after the colon names; None when there is none.

        Raise ToolError `auth-required`, whose message must not contain the secret.
        """
        ...

    def wanted(self, name: str) -> str:
        """Return what a person must do so that `read` finds it."""
        ...


class KeyringProvider:
    """Secrets in the keyring of the system: `keyring:SERVICE/USER`."""

    async def read(self, name: str) -> str | None:
        """Return the password of a user of a service."""
        service, _, user = name.rpartition("/")
        try:
            return await asyncio.to_thread(_from_keyring, service, user)
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - a keyring is a plug-in
            message = f"the keyring can't be read: {type(error).__name__}"
            raise ToolError(message, code="auth-required", setting="unlock it, and try again") from None

    def wanted(self, name: str) -> str:
        """Return the command that stores a password."""
        service, _, user = name.rpartition("/")
        return f"run `keyring set {shlex.quote(service)} {shlex.quote(user)}`"


class CommandProvider:
    """The output of a command that is started without a shell: `command:op read op://work/github/token`."""

    def __init__(self, seconds: float = COMMAND_SECONDS) -> None:
        self._seconds = seconds

    async def read(self, name: str) -> str | None:
        """Return what the command writes, without the line end; raise ToolError when it fails or takes too long."""
        argv = shlex.split(name)
        # A pipe of our own: the library waits for the end of a process until its pipes are read to their end.
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            os.close(reading)
            raise _failed(argv, f"can't be started: {error.strerror}") from None
        finally:
            os.close(writing)
        stream = asyncio.StreamReader()
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reading, "rb", 0)
        )
        try:
            async with asyncio.timeout(self._seconds):
                output = await _bounded(stream)
                if len(output) > MAX_SECRET_BYTES:
                    raise _failed(argv, f"wrote more than {MAX_SECRET_BYTES:,} bytes")
                status = await process.wait()
        except TimeoutError:
            raise _failed(argv, f"took longer than {self._seconds:g} s") from None
        finally:
            pipe.close()
            await _end(process)
        if status:
            raise _failed(argv, f"ended with status {status}")
        text = output.decode("utf-8", "surrogateescape").rstrip("\r\n")
        return text or None

    def wanted(self, name: str) -> str:
        """Return the command to try."""
        return f"look what `{name}` writes"


class StaticProvider:
    """Secrets that are given, by name. For tests: a configuration file can't name it."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets

    async def read(self, name: str) -> str | None:
        """Return the secret of this name."""
        return self._secrets.get(name)

    def wanted(self, name: str) -> str:
        """Return which name to give a secret."""
        return f"give the provider a secret called {name}"


PROVIDERS: ExtensionPoint[CredentialProvider] = ExtensionPoint(
    "scheme of credentials", {"keyring": KeyringProvider(), "command": CommandProvider()}
)
OWN_SCHEMES = ("env", "stored")
"""The schemes that need no provider."""


def _from_keyring(service: str, user: str) -> str | None:
    ring = keyring_module()
    if ring is None:
        setting = "run `pip install 'gloveport[keyring]'` where a keyring runs, or store it with `gloveport auth add`"
        raise ToolError("there is no keyring here", code="auth-required", setting=setting)
    return ring.get_password(service, user)


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    """Return the whole output, or one byte more than may be used."""
    output = bytearray()
    while len(output) <= MAX_SECRET_BYTES and (piece := await stream.read(MAX_SECRET_BYTES + 1 - len(output))):
        output += piece
    return bytes(output)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the command and its children, if they still run."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _failed(argv: list[str], problem: str) -> ToolError:
    # What the command wrote is not shown: it may be a secret.
    message = f"the command `{argv[0]}` for a credential {problem}"
    return ToolError(message, code="auth-required", setting=f"run `{shlex.join(argv)}` in a terminal to see why")
