const orders = await tools.list_orders({ customer: "ada" });
const total = orders.reduce((sum, o) => sum + o.total, 0);
console.log(`Total: ${total}`);
total
