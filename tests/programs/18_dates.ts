const start = new Date("2026-03-01T00:00:00Z");
const days = [0, 1, 2].map((n) => new Date(start.getTime() + n * 86_400_000).toISOString().slice(0, 10));
return days;
