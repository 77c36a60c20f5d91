"""What a person should look at before they approve a call: found in suspicious programs, and in no honest one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from benchmarks.programs import PROGRAM_JS, PROGRAM_PY, PROGRAM_TS

from gloveport.advice import KINDS, MAX_FINDINGS_OF_A_KIND, ProgramFinding, advise
from gloveport.errors import ProgramError
from gloveport.host.program_reader import _findings
from gloveport.prepare import find_findings, prepare
from gloveport.types import Language

TESTS = Path(__file__).parents[1]
REPOSITORY = TESTS.parent
SUSPICIOUS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("suspicious.toml").read_text())
LANGUAGES: dict[str, Language] = {".ts": "typescript", ".js": "javascript", ".py": "python"}
FENCE = re.compile(r"^```(ts|js|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"gloveport run[^\n]* -e '([^']+)'")


@pytest.mark.parametrize("name", SUSPICIOUS)
def test_a_suspicious_program_has_exactly_its_findings(name: str) -> None:
    row = SUSPICIOUS[name]
    found = find_findings(prepare(row["code"], language=row["language"]))
    assert [f"{kind} {line}" for kind, line in found] == row["findings"]


def test_every_kind_has_a_suspicious_program() -> None:
    assert {found.split()[0] for row in SUSPICIOUS.values() for found in row["findings"]} == set(KINDS)


def _honest_programs() -> Iterator[tuple[str, Language, str]]:
    for file in [*(TESTS / "programs").rglob("*"), *(REPOSITORY / "examples").glob("*")]:
        if file.suffix in LANGUAGES:
            yield file.name, LANGUAGES[file.suffix], file.read_text()
    for page in (REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")):
        text = page.read_text()
        for fence in FENCE.finditer(text):
            yield page.name, LANGUAGES[f".{fence[1][:2]}"], fence[2]
        for command in COMMAND.finditer(text):
            yield page.name, "typescript", command[1]
    yield "", "javascript", PROGRAM_JS
    yield "", "typescript", PROGRAM_TS
    yield "", "python", PROGRAM_PY


def test_no_program_of_the_tests_the_examples_and_the_documentation_has_a_finding() -> None:
    read = 0
    for name, language, text in _honest_programs():
        try:
            program = prepare(text, language=language)
        except ProgramError:
            continue  # it is there to be refused, or is code of the host
        assert find_findings(program) == (), (name, text)
        read += 1
    assert read > 90


@pytest.mark.parametrize(
    "code",
    [
        "const found = /a(b)/.exec(text); err.constructor.name; class A { constructor() {} }",
        "const pages = []; let next = null; while (true) { const page = await tools.list({next}); pages.push(page); if (!page.next) break; next = page.next }",
        "const order = await tools.orders.get({id: 1}); await fetch(`https://api.example.org/orders/${encodeURIComponent(order.id)}?full=1`)",
        "let url = 'https://api.example.org/items?page=1'; const items = await (await fetch(url)).json(); await fetch(`https://api.example.org/items?cursor=${items.next}`)",
        "const city = input.city; await fetch(`https://weather.example.org/?city=${city}`); await tools.log({city})",
        "const rows = await tools.rows({}); for (const row of rows) { try { await tools.mail({to: row.mail}); } catch (e) { console.log(e) } }",
        "try { await tools.a.get({}) } catch (e) { await tools.log.add({text: String(e)}) }",
        "while (true) { try { const page = await tools.list({}); if (!page.next) break; } catch (e) { throw e } }",
        "const token = btoa('user:password'); await tools.login({token})",
        "const sum = await crypto.subtle.digest('SHA-256', new Uint8Array(4)); await tools.put({sum: 'ab12'.repeat(16)})",
        "const function_ = (Function: string) => Function; await tools.mail({text: '🏴󠁧󠁢󠁥󠁮󠁧󠁿 👩‍👩‍👧 سلام'})",
    ],
)
def test_an_honest_script_has_none(code: str) -> None:
    assert find_findings(prepare(code)) == ()


@pytest.mark.parametrize(
    "code",
    [
        "import re\nword = re.compile('a+')\nprint(type(word).__name__, word.__class__, __name__)",
        "def compile(parts):\n    return ''.join(parts)\nawait tools.put(text=compile(['a']))",
        "import importlib\njson = importlib.import_module('json')\nmath = __import__('math')",
        "import base64, hashlib\nrow = await tools.row()\ndigest = hashlib.sha256(row['text'].encode()).hexdigest()\nawait tools.put(digest=digest, fixed=base64.b64encode(b'fixed').decode())",
        "while True:\n    page = await tools.list()\n    if not page['next']:\n        break",
        "for row in await tools.rows():\n    try:\n        await tools.mail(to=row['mail'])\n    except ToolError as error:\n        print(error)",
        "row = await tools.row()\nrow = {'id': 3}\nawait fetch(f'https://api.example.org/?id={row}')",
    ],
)
def test_an_honest_python_program_has_none(code: str) -> None:
    assert find_findings(prepare(code, language="python")) == ()


def test_the_reference_lists_every_kind_with_its_sentence() -> None:
    reference = (REPOSITORY / "docs" / "reference.md").read_text()
    rows = [f"| `{kind}` | {sentence[0].upper()}{sentence[1:]}. |" for kind, sentence in KINDS.items()]
    assert [row for row in rows if row not in reference] == []


def test_a_kind_is_reported_a_few_times_only() -> None:
    assert len(find_findings(prepare("eval('1');\n" * 50))) == MAX_FINDINGS_OF_A_KIND


def test_the_host_writes_the_advice_one_sentence_for_each_kind() -> None:
    found = [ProgramFinding("code-from-text", 3), ProgramFinding("native-code", 5), ProgramFinding("code-from-text", 7)]
    assert advise(found) == (
        "look at lines 3, 7: text becomes code, so the program does more than it shows",
        "look at line 5: ctypes reaches below the language",
    )


@pytest.mark.parametrize(
    "reported",
    [
        '[["Approve this at once", 1]]',
        '[["code-from-text", 0]]',
        '[["code-from-text", 3]]',
        '[["reflection", 1], ["reflection", 1], ["reflection", 1], ["reflection", 1]]',
        f'[{" " * 5000}["reflection", 1]]',
        "{}",
    ],
)
def test_findings_that_no_honest_process_reports_are_refused(reported: str) -> None:
    assert _findings("1\n2", [b'[["reflection", 2]]']) == (("reflection", 2),)
    with pytest.raises((ValueError, msgspec.DecodeError)):
        _findings("1\n2", [reported.encode()])
