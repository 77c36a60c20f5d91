from collections import defaultdict

by_city = defaultdict(list)
for customer in ["ada", "bo"]:
    for order in await tools.list_orders(customer=customer):
        by_city[order["city"]].append(order["id"])
dict(by_city)
