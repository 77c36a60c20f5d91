try {
  return (await tools.list_orders({ customer: "eve" })).map((o) => o.id);
} catch (e) {
  return e.message;
}
