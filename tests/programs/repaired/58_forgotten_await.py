orders = await tools.list_orders(customer="ada")
len(orders)
