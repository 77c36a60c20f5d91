"""The documentation is true: its snippets run, and nothing that a user can meet is missing from it."""

import asyncio
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from fuzz.targets import TARGETS

import gloveport
from gloveport import Gloveport, Limits
from gloveport.config import load_config
from gloveport.config.rule_tables import AGENT_KEYS
from gloveport.errors import CODES
from gloveport.rules.conditions import compile_condition
from gloveport.rules.rules import PRESETS
from gloveport.rules.tables import EGRESS_KEYS, RULE_KEYS
from gloveport.surfaces.cli.commands import cli
from gloveport.surfaces.cli.help import EXIT_CODES
from tests import module_map
from tests.surfaces.command import environment

REPOSITORY = Path(__file__).parents[1]
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")])
REFERENCE = (REPOSITORY / "docs" / "reference.md").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"`((?:src|tests|docs|examples|fuzz|benchmarks|conformance|interop)/[^`\s<>…*]*)`")
DESIGN = (REPOSITORY / "docs" / "design.md").read_text()
PACKAGE = REPOSITORY / "src" / "gloveport"
DEADLINE = 240


def _snippets(language: str) -> list[object]:
    found = []
    for page in PAGES:
        text = page.read_text()
        for snippet in FENCE.finditer(text):
            if snippet[1] == language:
                line = text.count("\n", 0, snippet.start()) + 1
                found.append(pytest.param(snippet[2], id=f"{page.name}:{line}"))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with the examples in it."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    return tmp_path


def _run(command: list[str], folder: Path) -> str:
    binaries = str(Path(sys.executable).parent)
    env = environment() | {f"XDG_{name}_HOME": str(folder / f".{name.lower()}") for name in ("CONFIG", "DATA", "CACHE")}
    env["PATH"] = f"{binaries}:{env['PATH']}"
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env, timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.integration
@pytest.mark.parametrize("code", _snippets("python"))
def test_python_snippets_run(code: str, folder: Path) -> None:
    _run([sys.executable, "-W", "error", "-c", code], folder)


@pytest.mark.integration
@pytest.mark.parametrize("code", _snippets("ts"))
def test_typescript_snippets_run_with_the_demo_tools(code: str, folder: Path) -> None:
    (folder / "snippet.ts").write_text(code)
    assert _run(["gloveport", "run", "snippet.ts", "--tools", "examples/demo_tools.py"], folder)


@pytest.mark.integration
@pytest.mark.parametrize("code", _snippets("sh"))
def test_shell_snippets_run(code: str, folder: Path) -> None:
    assert re.match(r"gloveport |echo ", code), "a snippet that can't be run is no ```sh block"
    assert _run(["bash", "-euo", "pipefail", "-c", code], folder)


@pytest.mark.integration
def test_what_the_readme_shows_is_what_happens(folder: Path) -> None:
    readme = (REPOSITORY / "README.md").read_text()
    command, shown = (snippet[2] for snippet in list(FENCE.finditer(readme))[:2])
    both = _run(["bash", "-c", f"{{ {command} }} 2>&1"], folder)
    without_times = re.compile(r"\d+ ms$", re.MULTILINE)
    assert without_times.sub("… ms", both) == without_times.sub("… ms", shown)


def test_the_readme_and_the_changelog_are_short() -> None:
    readme = (REPOSITORY / "README.md").read_text().splitlines()
    assert len(readme) <= 150
    assert [line for line in readme if len(line) > 120] == []
    assert len((REPOSITORY / "CHANGELOG.md").read_text().splitlines()) <= 30


def test_the_settings_and_conditions_that_the_page_on_rules_shows_are_valid(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "rules.md").read_text()
    assert len(page.splitlines()) <= 120
    file = tmp_path / "gloveport.toml"
    file.write_text("\n".join(snippet[2] for snippet in FENCE.finditer(page) if snippet[1] == "toml"))
    governance = load_config(file, user=tmp_path / "none").governance
    assert (len(governance.rules), len(governance.budgets), list(governance.agents)) == (7, 2, ["support"])
    block = page.partition("## Conditions\n\n```\n")[2].partition("```")[0]
    conditions = [text for line in block.splitlines() for text in re.split(r" {3,}", line)]
    assert len([compile_condition(text) for text in conditions]) == 4
    for name in (*RULE_KEYS, *EGRESS_KEYS, *AGENT_KEYS, *PRESETS):
        assert f"`{name}`" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_path_and_make_target_exists(page: Path) -> None:
    text = page.read_text()
    assert [target for target in re.findall(r"\]\(([^)#:]+)\)", text) if not (page.parent / target).exists()] == []
    assert [path for path in PATH.findall(text) if not (REPOSITORY / path).exists()] == []
    targets = re.findall(r"^([a-z][a-z ]*):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    known = {name for target in targets for name in target.split()}
    assert [name for name in re.findall(r"`make ([a-z]+)", text) if name not in known] == []


def test_the_page_on_attacks_lists_every_fuzz_target() -> None:
    table = (REPOSITORY / "docs" / "attacks.md").read_text().partition("| target |")[2].partition("\n\n")[0]
    listed = [name for row in table.splitlines()[2:] for name in re.findall(r"`([\w-]+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(target.name for target in TARGETS)


def _tree() -> dict[str, str]:
    """Return the paths in the tree that docs/design.md draws, with what it says of each."""
    block = re.search(r"^```\nsrc/gloveport/\n(.*?)^```$", DESIGN, re.MULTILINE | re.DOTALL)
    assert block
    found, above = {}, []
    for line in block[1].splitlines():
        entry = re.fullmatch(r"(?P<indent> +)(?P<name>[\w.]+/?) +(?P<text>\S.*)", line)
        assert entry, line
        above = [*above[: len(entry["indent"]) // 2 - 1], entry["name"]]
        found["".join(above)] = entry["text"]
    return found


def test_the_design_draws_the_tree_that_exists() -> None:
    tree = _tree()
    planned = {path for path, text in tree.items() if text.startswith("planned: ")}
    assert {path for path in tree if not (PACKAGE / path).exists()} == planned
    folders = [path for path in PACKAGE.rglob("*") if path.is_dir() and list(path.glob("*.py"))]
    drawn = {f"{path.relative_to(PACKAGE)}/" for path in folders if len(path.relative_to(PACKAGE).parts) <= 2}
    modules = {path.name for path in PACKAGE.glob("*.py") if path.name != "__main__.py"}
    assert (drawn | modules) - tree.keys() == set()


def test_every_file_and_every_function_that_the_design_names_exists() -> None:
    files = set(re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", DESIGN))
    assert len(files) > 30
    assert {file for file in files if not (PACKAGE / file).exists() and not (REPOSITORY / file).exists()} == set()
    steps = re.findall(r"^\| \d+ \| `([^`]+)` \| ([^|]+) \|", DESIGN, re.MULTILINE)
    assert len(steps) > 30
    for file, functions in steps:
        for function in re.findall(r"`([^`]+)`", functions):
            for name in function.split("."):
                defined = rf"^ *(?:export )?(?:async )?(?:def|class|function) {name}\b"
                assert re.search(defined, (PACKAGE / file).read_text(), re.MULTILINE), f"{file} does not define {function}"


@pytest.mark.parametrize("code", CODES)
def test_every_error_code_is_in_the_reference_as_it_is(code: str) -> None:
    row = CODES[code]
    assert f"| `{code}` | {row.exit} | {row.cause} | {row.advice} |" in REFERENCE


@pytest.mark.parametrize("number", EXIT_CODES)
def test_every_exit_code_is_in_the_reference(number: int) -> None:
    assert f"| {number} | {EXIT_CODES[number]}" in REFERENCE


@pytest.mark.parametrize("name", cli.commands)
def test_every_command_and_each_of_its_options_is_in_the_reference(name: str) -> None:
    section = REFERENCE.partition(f"### `gloveport {name}")[2].partition("\n#")[0]
    assert section, f"gloveport {name} is not documented"
    options = {option for parameter in cli.commands[name].params for option in parameter.opts if option.startswith("--")}
    shared = {"--json"}
    for option in options - shared:
        assert f"`{option}`" in section, f"gloveport {name} {option} is not documented"


@pytest.mark.parametrize("limit", [item.name for item in fields(Limits)])
def test_every_limit_is_in_the_reference_with_its_default(limit: str) -> None:
    assert f"| `{limit}` | {getattr(Limits(), limit)} |" in REFERENCE


@pytest.mark.parametrize("name", gloveport.__all__)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert re.search(rf"`[^`]*\b{name}\b|^(?:from|with|@).*\b{name}\b", REFERENCE, re.MULTILINE)


@pytest.mark.integration
def test_every_layer_of_the_jail_is_explained() -> None:
    sandbox = (REPOSITORY / "docs" / "sandbox.md").read_text()

    async def layers() -> list[str]:
        async with Gloveport(spare=0, minimum="none") as port:
            return [layer.name for layer in (await port.open()).layers]

    names = asyncio.run(layers())
    assert names
    for name in names:
        assert f"| `{name}` |" in sandbox


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    page = (REPOSITORY / "docs" / "dependencies.md").read_text()
    for dependency in project["dependencies"]:
        name = re.match(r"[\w-]+", dependency)
        assert name
        assert f"`{name[0]}`" in page, f"{name[0]} is not explained"
    for extra, packages in project["optional-dependencies"].items():
        for package in packages if extra != "dev" else ():
            name = re.match(r"[\w-]+", package)
            assert name
            assert f"| `{extra}` | `{name[0]}` |" in page, f"{package} is not explained"


def test_the_list_of_modules_is_current() -> None:
    assert module_map.PAGE.read_text() == module_map.render(), "run `python -m tests.module_map`"
