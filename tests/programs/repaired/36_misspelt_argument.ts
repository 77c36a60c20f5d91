const orders = await tools.list_orders({ customer: "ada" });
return orders.length;
