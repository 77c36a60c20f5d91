const orders = await tools.list_orders({ customer: "ada" });
const n = orders.length;
return tools.list_orders({ customer: n });
