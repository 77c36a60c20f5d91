const customers = ["ada", "nobody", "bo"];
const answers = await Promise.allSettled(customers.map((customer) => tools.list_orders({ customer })));
return answers.map((answer, i) =>
  answer.status === "fulfilled"
    ? { customer: customers[i], orders: answer.value.length }
    : { customer: customers[i], failed: answer.reason.code }
);
