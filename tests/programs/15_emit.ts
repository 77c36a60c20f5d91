const orders = await tools.list_orders({ customer: "ada" });
emit({ type: "table", rows: orders.map((o) => [o.id, o.city]) });
`${orders.length} orders`
