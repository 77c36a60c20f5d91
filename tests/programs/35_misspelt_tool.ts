const w = await tools.get_wether({ city: "Oslo" });
return w.sky;
