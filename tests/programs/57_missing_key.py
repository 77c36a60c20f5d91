orders = await tools.list_orders(customer="ada")
[o["price"] for o in orders]
