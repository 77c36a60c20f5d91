return await tools.get_weather({ city: "Oslo" });
