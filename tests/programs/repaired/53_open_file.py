import csv, io
orders = await tools.list_orders(customer="ada")
out = io.StringIO()
writer = csv.DictWriter(out, fieldnames=["id", "city", "total", "currency"])
writer.writerows(orders)
len(out.getvalue().splitlines())
