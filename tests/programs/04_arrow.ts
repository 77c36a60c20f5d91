async () => {
  const { celsius, sky } = await tools.get_weather({ city: "Tokyo" });
  return `${sky}, ${celsius} °C`;
}
