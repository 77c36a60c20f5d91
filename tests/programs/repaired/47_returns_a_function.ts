const orders = await tools.list_orders({ customer: "ada" });
return { orders: orders.length };
