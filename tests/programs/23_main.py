async def main():
    orders = await tools.list_orders(customer="bo")
    return {"count": len(orders), "total": sum(o["total"] for o in orders)}
