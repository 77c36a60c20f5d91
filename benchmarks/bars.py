"""Find the rows that miss their bar. They are read from the table itself, so that text and table agree."""

from __future__ import annotations

import re

from benchmarks.sampling import Row

BAR = re.compile(r"([≤≥]) \+?([\d.,]+) (×|ms|s|MB|tokens)(?!\w)")


def missed(rows: list[Row]) -> list[str]:
    """Return a line for each missed bar."""
    out = []
    for name, ours, floor, ratio, bar in rows:
        for sign, limit, unit in BAR.findall(bar):
            found = re.search(rf"([\d.,]+) {unit}(?!\w)", f"{ratio} {ours}")
            if found is None:
                continue
            figure, least = (float(text.replace(",", "")) for text in (found[1], limit))
            if figure > least if sign == "≤" else figure < least:
                beside = f" beside {floor}" if floor else ""
                out.append(f"- {name}: {ours}{beside}; the bar is {sign} {limit} {unit}, measured {found[0]}.")
    return out
