w = await tools.get_weather({city: "Oslo"})
w["sky"]
