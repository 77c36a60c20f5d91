const orders = await tools.list_orders({ customer: "ada" });
const ids = orders.map(o => o.id);
return ids;
