try {
  await tools.list_orders({ customer: "nobody" });
} catch (e) {
  if (e instanceof ToolError && e.origin === "tool") {
    return { error: e.code, message: e.message };
  }
  throw e;
}
