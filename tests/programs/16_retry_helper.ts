async function retry<T>(f: () => Promise<T>, times = 3): Promise<T> {
  for (let i = 0; ; i++) {
    try {
      return await f();
    } catch (e) {
      if (i + 1 >= times || !e.retryable) throw e;
      await new Promise((r) => setTimeout(r, 10 * 2 ** i));
    }
  }
}
(await retry(() => tools.get_weather("Oslo"))).sky
