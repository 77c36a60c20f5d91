const orders = await tools.list_orders("ada");
return orders.map((o) => o.id);
