"""An error that ends a program gets a hint if it is a common mistake."""

import pytest

from gloveport.bridge.hints import with_hint
from gloveport.catalog import Catalog
from gloveport.sources.functions import functions
from gloveport.types import Failure


def make_person(name: str) -> str:
    return name


CATALOG = Catalog([functions([make_person]), functions([make_person], name="people")])
NO_FILES = "only the files of a session"
TOOL = "did you mean `tools.make_person(…)` or `tools.people.make_person(…)`?"


@pytest.mark.parametrize(
    ("type_", "message", "hint"),
    [
        ("ReferenceError", "make_person is not defined", TOOL),
        ("ReferenceError", "makePerson is not defined", TOOL),
        ("NameError", "name 'make_person' is not defined", TOOL),
        ("NameError", "name 'input' is not defined", "the run was given no input"),
        ("ReferenceError", "input is not defined", "the run was given no input"),
        ("ReferenceError", "WebAssembly is not defined", "WebAssembly is off here"),
        ("ReferenceError", "files is not defined", NO_FILES),
        ("EvalError", "Code generation from strings disallowed", "eval and new Function are off here"),
        ("ReferenceError", "total is not defined", None),
        ("NameError", "name 'total' is not defined", None),
        ("NameError", "", None),
        ("NameError", " is not defined", None),
        ("TypeError", "make_person is not defined", None),
        ("ReferenceError", f"{'x' * 100_000} is not defined", None),
    ],
)
def test_a_common_mistake_gets_a_hint_and_others_do_not(type_: str, message: str, hint: str | None) -> None:
    found = with_hint(Failure("program-failed", type_, message), CATALOG).hint
    assert found is None if hint is None else hint in (found or "")


@pytest.mark.parametrize(
    ("type_", "message", "setting"),
    [
        ("ReferenceError", "WebAssembly is not defined", "allow_wasm=True"),
        ("EvalError", "Code generation from strings disallowed", "allow_eval=True"),
        ("EvalError", "Code generation from strings disallowed", "allow_eval = true below [sandbox]"),  # of a server
        ("NameError", "name 'input' is not defined", "input=…"),
        ("ReferenceError", "Intl is not defined", 'engine="deno"'),
    ],
)
def test_the_hint_is_for_the_author_and_the_setting_for_the_person(type_: str, message: str, setting: str) -> None:
    found = with_hint(Failure("program-failed", type_, message), CATALOG)
    assert setting in (found.setting or "")
    assert setting not in (found.hint or "") and "--" not in f"{found.hint}{found.setting}"


@pytest.mark.parametrize(
    ("type_", "message", "hint"),
    [
        ("KeyError", "'price'", "look at the keys"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'data.json'", NO_FILES),
        ("OSError", "[Errno 30] Read-only file system: 'out.csv'", NO_FILES),
        ("PermissionError", "[Errno 13] Permission denied: '.'", NO_FILES),
        ("OperationalError", "unable to open database file", NO_FILES),
        ("PermissionError", "[Errno 1] Operation not permitted", "processes and raw sockets are refused"),
        ("gaierror", "[Errno -3] Temporary failure in name resolution", "raw sockets and custom DNS are refused"),
        (
            "URLError",
            "<urlopen error [Errno -3] Temporary failure in name resolution>",
            "raw sockets and custom DNS are refused",
        ),
        ("ReferenceError", "Deno is not defined", "there are no files, processes or sockets"),
        ("AttributeError", "'dict' object has no attribute 'total'", 'write `["total"]` instead of `.total`'),
        ("OSError", "of the program's own", None),
        ("ValueError", "Read-only file system", None),
    ],
)
def test_a_program_that_looks_for_the_outside_is_told_that_there_is_none(
    type_: str, message: str, hint: str | None
) -> None:
    found = with_hint(Failure("program-failed", type_, message), CATALOG).hint
    assert found is None if hint is None else hint in (found or "")


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'data.json'"),
        ("NotFound", "No such file or directory (os error 2): readfile 'data.json'"),
        ("OSError", "[Errno 30] Read-only file system: '/out.csv'"),
    ],
)
def test_a_program_with_a_session_is_told_where_its_files_are(type_: str, message: str) -> None:
    found = with_hint(Failure("program-failed", type_, message), CATALOG, has_files=True).hint or ""
    assert "in the working directory" in found


@pytest.mark.parametrize(
    ("type_", "name", "line", "hint"),
    [
        ("ReferenceError", "print", "print(1)", 'set the language to "python"'),
        ("ReferenceError", "city", "await tools.weather(city='Oslo')", "pass one object: `{city: …}`"),
        ("ReferenceError", "rows", "rows = await tools.list()", "declare it: `const rows = …`"),
        ("ReferenceError", "rows", "if (rows == 1) return", None),
        ("NameError", "console", "console.log(1)", 'set the language to "typescript"'),
        ("NameError", "city", "await tools.weather({city: 'Oslo'})", "quote the keys of a dict"),
        ("NameError", "asyncio", "await asyncio.sleep(1)", "write `import asyncio` first"),
    ],
)
def test_a_name_of_another_language_is_recognised(type_: str, name: str, line: str, hint: str | None) -> None:
    message = f"{name} is not defined" if type_ == "ReferenceError" else f"name '{name}' is not defined"
    failure = Failure("program-failed", type_, message, 1, 1, f"1 | {line}\n  | ^")
    found = with_hint(failure, CATALOG).hint
    assert found is None if hint is None else hint in (found or "")


def test_a_hint_that_is_there_stays() -> None:
    assert with_hint(Failure("program-failed", "EvalError", "x", hint="mine"), CATALOG).hint == "mine"
