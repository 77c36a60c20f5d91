const [a, b] = await Promise.all([
  tools.get_weather({city: "Oslo"}),
  tools.get_weather({city: "Lisbon"}),
]);
b.celsius - a.celsius
