const orders = await tools.list_orders({ customer: "ada" });
const rows = await Promise.all(orders.map(async ({ id, city }) => {
  const { sky } = await tools.get_weather({ city });
  return { id, days: await tools.delivery_days({ city, sky }) };
}));
rows.sort((a, b) => b.days - a.days);
return rows[0];
