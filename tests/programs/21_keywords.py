orders = await tools.list_orders(customer="ada")
[order["id"] for order in orders if order["total"] > 1000]
