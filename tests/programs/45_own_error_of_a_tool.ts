const orders = await tools.list_orders({ customer: "eve" });
return orders.map((o) => o.id);
