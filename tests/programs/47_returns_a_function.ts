const orders = await tools.list_orders({ customer: "ada" });
return { orders, total: () => orders.length };
