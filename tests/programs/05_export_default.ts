export default async function main(tools: any) {
  const orders = await tools.list_orders({ customer: "bo" });
  return { count: orders.length, first: orders[0].id };
}
