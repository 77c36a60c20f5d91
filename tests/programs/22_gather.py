import asyncio

cities = ["Oslo", "Lisbon", "Tokyo"]
weather = await asyncio.gather(*(tools.get_weather(city=city) for city in cities))
{w["city"]: w["celsius"] for w in weather}
