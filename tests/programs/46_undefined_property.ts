const orders = await tools.list_orders({ customer: "ada" });
const order = orders.find((o) => o.id === "A-9999");
return order.total;
