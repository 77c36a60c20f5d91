const orders = await tools.list_orders({ customer: "ada" });
const ids = orders.map((o) => {
  return o.id;
});
return ids;
