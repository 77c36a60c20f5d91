try:
    orders = await tools.list_orders(customer="nobody")
except Exception as e:
    orders = {"error": e.code, "message": str(e)}
orders
