orders = await tools.list_orders(customer="ada")
[o["id"] for o in orders]
