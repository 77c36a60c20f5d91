interface Totals { [currency: string]: number }
const totals: Totals = {};
for (const customer of ["ada", "bo"]) {
  for (const order of await tools.list_orders({ customer })) {
    totals[order.currency] = (totals[order.currency] ?? 0) + order.total;
  }
}
return totals;
