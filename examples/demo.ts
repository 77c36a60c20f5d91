// A program as an agent would write it: look up a customer's orders, then ask for everything about them in parallel.
interface Order {
  id: string;
  city: string;
  total: number;
  currency: string;
}

const customer: string = "ada";
const orders: Order[] = await tools.list_orders({ customer });
console.log(`${customer} has ${orders.length} open orders`);

const lines = await Promise.all(orders.map(async (order) => {
  const [weather, euros] = await Promise.all([
    tools.get_weather({ city: order.city }),
    tools.convert({ amount: order.total, source: order.currency }),
  ]);
  const days: number = await tools.delivery_days({ city: order.city, sky: weather.sky });
  return { order: order.id, city: order.city, euros, days };
}));

const slowest = lines.reduce((a, b) => (b.days > a.days ? b : a));
if (slowest.days > 3) console.warn(`${slowest.order} takes ${slowest.days} days`);
emit({ progress: "done", orders: lines.length });

return { customer, total_eur: lines.reduce((sum, line) => sum + line.euros, 0), lines };
