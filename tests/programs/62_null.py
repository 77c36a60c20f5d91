best = null
for o in await tools.list_orders(customer="ada"):
    best = o if best == null or o["total"] > best["total"] else best
best["id"]
