"""The programs of the benchmarks: 20 lines in each language without calls, and one in Python with a few."""

from __future__ import annotations

from itertools import count

from gloveport.types import Language

PROGRAM_JS = """
const orders = Array.from({length: 40}, (_, i) => ({id: i, total: (i * 37) % 101, city: ["Oslo", "Rome", "Kyiv"][i % 3]}));
const byCity = {};
for (const order of orders) {
  const entry = byCity[order.city] ??= {count: 0, total: 0, largest: null};
  entry.count += 1;
  entry.total += order.total;
  if (entry.largest === null || order.total > entry.largest.total) entry.largest = order;
}
const ranking = Object.entries(byCity)
  .map(([city, entry]) => ({city, mean: entry.total / entry.count, ...entry}))
  .sort((a, b) => b.total - a.total);
function label(entry) {
  const money = entry.total.toFixed(2).padStart(10);
  return `${entry.city.padEnd(6)} ${money} ${entry.count}`;
}
const lines = ranking.map(label);
const summary = {best: ranking[0].city, lines, checksum: lines.join("").length};
summary.words = summary.lines.flatMap((line) => line.split(/\\s+/)).filter(Boolean);
return summary;
""".strip()
PROGRAM_TS = (
    PROGRAM_JS.replace("const byCity = {}", "interface Entry { count: number; total: number; largest: any }\nconst byCity: Record<string, Entry> = {}")
    .replace("function label(entry)", "function label(entry: {city: string; total: number; count: number}): string")
    .replace("const summary =", "const summary: any =")
)  # fmt: skip
PROGRAM_PY = """
import asyncio
import json
from datetime import datetime

CITIES = ["Oslo", "Bergen", "Tromsø"]

async def fetch(city: str) -> dict:
    weather = await tools.echo(value=len(city))
    return {"city": city, "temp": weather, "at": datetime.now().isoformat()}

results = await asyncio.gather(*(fetch(city) for city in CITIES))
warm = [row for row in results if row["temp"] > 10]
for row in sorted(warm, key=lambda row: -row["temp"]):
    print(f"{row['city']}: {row['temp']:.1f}")
    if row["temp"] > 30:
        await tools.echo(value=row["temp"])
summary = {"count": len(warm), "mean": sum(r["temp"] for r in warm) / max(1, len(warm))}
json.dumps(summary)
"""

_numbers = count()


def unread(program: str, language: Language) -> str:
    """Return a program with a comment of its own, so that no process has read this text before."""
    return f"{program}\n{'#' if language == 'python' else '//'} {next(_numbers)}"
