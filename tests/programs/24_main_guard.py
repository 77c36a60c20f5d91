import asyncio


async def main():
    weather = await tools.get_weather(city="Oslo")
    return weather["sky"]


if __name__ == "__main__":
    asyncio.run(main())
