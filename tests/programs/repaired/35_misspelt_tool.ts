const w = await tools.get_weather({ city: "Oslo" });
return w.sky;
