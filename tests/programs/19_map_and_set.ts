const orders = await tools.list_orders({ customer: "ada" });
const byCity = new Map(orders.map((o) => [o.city, o.total]));
return { cities: [...new Set(byCity.keys())].sort(), oslo: byCity.get("Oslo") };
