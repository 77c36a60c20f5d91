"""Three tools for the benchmark of MCP servers; ours and FastMCP's serve the same file."""


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def double(n: int) -> int:
    """Twice a number."""
    return 2 * n


async def label(n: int) -> str:
    """A label for a number."""
    return f"number {n}"
