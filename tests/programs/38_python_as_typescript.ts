orders = await tools.list_orders(customer="ada")
total = sum(o["total"] for o in orders)
print(f"Total: {total}")
total
