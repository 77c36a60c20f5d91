orders = await tools.list_orders(customer="ada")
[o["total"] for o in orders]
