results = {}
for name in ("ada", "nobody"):
    try:
        results[name] = len(await tools.list_orders(name))
    except ToolError as error:
        results[name] = error.code
return results
