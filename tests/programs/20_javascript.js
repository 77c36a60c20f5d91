const orders = await tools.list_orders({ customer: "bo" });
let sum = 0;
for (let i = 0; i < orders.length; i++) sum += orders[i].total;
sum
