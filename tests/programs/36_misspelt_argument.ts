const orders = await tools.list_orders({ custmer: "ada" });
return orders.length;
