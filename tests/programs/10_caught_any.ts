let result;
try {
  result = await tools.list_orders({ customer: "nobody" });
} catch (error: any) {
  result = { code: error.code, retryable: error.retryable };
}
result
