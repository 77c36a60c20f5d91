orders = await tools.list_orders({ customer: "ada" });
orders.length
