import csv
orders = await tools.list_orders(customer="ada")
with open("orders.csv", "w") as out:
    writer = csv.DictWriter(out, fieldnames=["id", "city", "total", "currency"])
    writer.writerows(orders)
