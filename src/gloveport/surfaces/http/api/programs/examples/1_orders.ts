// What ada's orders cost, and when they arrive
// Tools: list_orders, get_weather, convert, delivery_days
const orders = await tools.list_orders({ customer: "ada" });
const lines = await Promise.all(
  orders.map(async (order) => {
    const [weather, euros] = await Promise.all([
      tools.get_weather({ city: order.city }),
      tools.convert({ amount: order.total, source: order.currency }),
    ]);
    const days = await tools.delivery_days({ city: order.city, sky: weather.sky });
    return { order: order.id, city: order.city, euros, days };
  }),
);
console.log(`${lines.length} orders`);
lines;
