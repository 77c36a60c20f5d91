best = None
for o in await tools.list_orders(customer="ada"):
    best = o if best is None or o["total"] > best["total"] else best
best["id"]
