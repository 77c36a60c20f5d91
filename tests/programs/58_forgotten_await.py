orders = tools.list_orders(customer="ada")
len(orders)
