import asyncio
weather = await asyncio.gather(*(tools.get_weather(city=c) for c in ["Oslo", "Tokyo"]))
[w["sky"] for w in weather]
