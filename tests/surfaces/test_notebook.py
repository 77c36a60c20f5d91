"""`%load_ext gloveport` and `%%gloveport`, in a real IPython shell with its own event loop."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from gloveport import Outcome

pytestmark = pytest.mark.integration


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    shell = InteractiveShell()
    shell.history_manager.enabled = False
    run(shell, "%load_ext gloveport")
    yield shell
    run(shell, "%unload_ext gloveport")
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, cell: str) -> Any:
    """Run a cell as a user does, and return what the notebook would show."""
    ran = shell.run_cell(cell, store_history=False)
    ran.raise_error()
    return ran.result


def test_a_cell_is_a_program_and_its_outcome_is_shown(shell: InteractiveShell) -> None:
    shown = run(shell, "%%gloveport ts --to found\nconst one: number = await Promise.resolve(41);\none + 1")
    assert isinstance(shown, Outcome)
    assert shown.value == 42
    assert run(shell, "found.value + 1") == 43
    assert "<b" in shell.display_formatter.format(shown)[0]["text/html"]
    assert run(shell, "%%gloveport py\nimport asyncio\nawait asyncio.sleep(0)\n[1, 2]").value == [1, 2]
    assert run(shell, "%%gloveport py\nopen('/etc/passwd')").status == "failed"


def test_a_port_of_the_notebook_serves_cells_with_its_functions(shell: InteractiveShell) -> None:
    run(
        shell,
        "from gloveport import Gloveport\nasync def twice(n: int) -> int:\n    return n * 2\nmine = Gloveport(tools=[twice])",
    )
    run(shell, "await mine.open()")
    assert run(shell, "%%gloveport ts --port mine\nawait tools.twice({n: 21})").value == 42
    assert run(shell, "(await mine.run('await tools.twice({n: 4})')).value") == 8
    run(shell, "await mine.close()")


def test_a_wrong_line_names_what_may_be_written(shell: InteractiveShell) -> None:
    for line, reason in (("rust", "invalid choice"), ("ts --port nothing", "nothing is not a Gloveport")):
        with pytest.raises(Exception, match=reason):
            run(shell, f"%%gloveport {line}\n1")
