import asyncio
import json

async def main():
    w = await tools.get_weather("Lisbon")
    print(json.dumps(w, indent=2))

asyncio.run(main())
