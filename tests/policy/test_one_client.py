"""HTTP is spoken in one folder: every other module's imports are read."""

import ast
from pathlib import Path

import gloveport

ROOT = Path(gloveport.__file__).parent
HOME = ROOT / "policy" / "egress"
CLIENTS = {
    "httpx2",
    "httpx",
    "httpcore2",
    "httpcore",
    "urllib.request",
    "http.client",
    "requests",
    "aiohttp",
    "urllib3",
    "h11",
    "websockets",
    "ftplib",
    "smtplib",
    "xmlrpc",
}
# What opens connections to other hosts; a pair of sockets or a listening one is not meant.
DIALS = {"open_connection", "create_connection", "connect_tcp", "connect_ex", "create_datagram_endpoint", "sock_connect"}


def modules() -> list[Path]:
    found = [path for path in ROOT.rglob("*.py") if HOME not in path.parents and "guest" not in path.parts]
    assert len(found) > 50
    return found


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def clients(tree: ast.AST) -> set[str]:
    return {name for name in imported(tree) for client in CLIENTS if name == client or name.startswith(f"{client}.")}


def bare_clients(tree: ast.AST) -> list[int]:
    """The lines at which a client of httpx2 is made without a transport, or dialling is done by hand."""
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        without = not any(keyword.arg == "transport" for keyword in node.keywords)
        if name in DIALS or (name in {"AsyncClient", "create_mcp_http_client"} and without):
            lines.append(node.lineno)
    return lines


def test_no_other_module_imports_an_http_client() -> None:
    for path in modules():
        found = clients(ast.parse(path.read_text()))
        # The MCP library wants an httpx2 client, which must be given egress's transport: the next test sees to that.
        allowed = (
            {name for name in found if name.split(".")[0] == "httpx2"}
            if ROOT / "sources" / "mcp" in path.parents
            else set()
        )
        assert found == allowed, path


def test_no_other_module_dials_or_makes_a_client_without_egresss_transport() -> None:
    for path in modules():
        assert bare_clients(ast.parse(path.read_text())) == [], path


def test_the_check_finds_what_it_looks_for() -> None:
    assert clients(ast.parse("import urllib.request as x"))
    assert clients(ast.parse("from urllib import request"))
    assert clients(ast.parse("def f():\n from httpx2 import AsyncClient"))
    assert not clients(ast.parse("from urllib.parse import quote"))
    assert bare_clients(ast.parse("httpx2.AsyncClient(timeout=3)")) == [1]
    assert bare_clients(ast.parse("httpx2.AsyncClient(transport=egress.transport(reach))")) == []
    assert bare_clients(ast.parse("await asyncio.open_connection('example.org', 80)")) == [1]
