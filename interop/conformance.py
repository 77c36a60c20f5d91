"""`make conformance` runs the MCP conformance suite against our server and our client, in both revisions."""

from __future__ import annotations

import asyncio
import sys

from interop import client_suite, server_suite


async def main() -> int:
    """Run both halves and return the exit code."""
    wrong = await server_suite.main() + await client_suite.main()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
