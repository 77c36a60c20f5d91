async function main() {
  const weather = await tools.get_weather({ city: "Lisbon" });
  console.log(JSON.stringify(weather, null, 2));
  return weather.sky;
}

main();
