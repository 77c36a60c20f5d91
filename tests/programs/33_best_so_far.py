best = None
for city in ["Oslo", "Lisbon", "Tokyo"]:
    w = await tools.get_weather(city)
    if best is None or w["celsius"] > best["celsius"]:
        best = w
best["city"]
