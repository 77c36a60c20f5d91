const orders = await tools.list_orders({ customer: "ada" });
const euros = await Promise.all(
  orders.map((order) => tools.convert({ amount: order.total, source: order.currency })),
);
console.log("orders:", orders.length);
euros.reduce((sum: number, each: number) => sum + each, 0);
