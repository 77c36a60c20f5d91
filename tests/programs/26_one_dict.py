result = await tools.convert({"amount": 10, "source": "USD", "target": "EUR"})
result
