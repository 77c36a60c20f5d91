// Refund a late order: it writes, so a person is asked
// Tools: list_orders, convert, refund
const [order] = await tools.list_orders({ customer: "ada" });
const euros = await tools.convert({ amount: order.total, source: order.currency });
console.log(`${order.id} cost ${euros} EUR; asking for a tenth of it`);
await tools.refund({ order: order.id, amount: Math.round(euros * 10) / 100 });
