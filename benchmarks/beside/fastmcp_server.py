"""Serve the tools of shop.py with FastMCP's code mode. Takes the port as its argument and needs FastMCP."""

import sys

import shop  # pyright: ignore[reportMissingImports]
import uvicorn
from fastmcp import FastMCP  # pyright: ignore[reportMissingImports]
from fastmcp.experimental.transforms.code_mode import CodeMode  # pyright: ignore[reportMissingImports]

server = FastMCP("floor", transforms=[CodeMode()])
for function in (shop.add, shop.double, shop.label):
    server.tool(function)
uvicorn.run(server.http_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
