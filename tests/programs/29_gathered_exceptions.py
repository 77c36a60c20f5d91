import asyncio
results = await asyncio.gather(
    tools.list_orders("ada"), tools.list_orders("nobody"), return_exceptions=True
)
["failed" if isinstance(r, Exception) else len(r) for r in results]
