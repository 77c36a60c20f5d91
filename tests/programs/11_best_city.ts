const cities = ["Oslo", "Lisbon", "Tokyo"];
let best = null;
for (const city of cities) {
  const w = await tools.get_weather({ city });
  if (!best || w.celsius > best.celsius) best = w;
}
return best.city;
