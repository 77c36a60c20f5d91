"""`gloveport sources` and `gloveport remove` as real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.surfaces.command import gloveport
from tests.test_sources import ORDERS

pytestmark = pytest.mark.integration

PEOPLE = "def greet(name: str) -> str:\n    return name\n"


@pytest.fixture(autouse=True)
def project(folder: Path) -> Path:
    Path("people.py").write_text(PEOPLE)
    Path("orders.json").write_text(json.dumps(ORDERS))
    return folder


def test_every_source_is_listed_with_its_state_and_the_number_of_its_tools(project: Path) -> None:
    assert "`gloveport add --help` shows how to add one" in gloveport("sources").err
    assert gloveport("add", "people.py", "--yes").code == 0
    assert gloveport("add", "orders.json", "--base-url", "https://orders.example.org", "--yes").code == 0
    with Path("gloveport.toml").open("a") as file:
        file.write('\n[sources.gone]\nopenapi = "gone.json"\n\n[sources.new]\nmcp = ["run-me", "now"]\n')
    document = gloveport("sources", "--json").document
    assert (document["ok"], document["error"]["code"]) == (False, "source-failed")
    assert document["error"]["data"] == {"sources": ["gone", "new"]}
    rows = {row["name"]: row for row in document["sources"]}
    assert {name: (row["state"], row["tools"], row["writes"]) for name, row in rows.items()} == {
        "people": ("open", 1, 0),
        "orders": ("open", 3, 1),
        "gone": ("broken", 0, 0),
        "new": ("untrusted", 0, 0),
    }
    assert rows["people"]["file"] == f"{project / 'gloveport.toml'}:2"
    assert rows["new"]["location"] == "run-me now"
    assert "does not exist" in rows["gone"]["problem"]
    assert "tools trust new" in rows["new"]["hint"]
    Path("orders.json").write_text(json.dumps(ORDERS).replace("Get an order", "Get an order, and more"))
    listed = gloveport("sources")
    assert "3 tools, 1 write, 1 suspended" in listed.out
    assert "does not exist" in listed.err
    assert listed.code == 7
    for name in ("gone", "new"):
        assert gloveport("remove", name, "--yes").code == 0
    assert gloveport("sources").code == 0
    assert gloveport("sources", "--json").document["ok"] is True


def test_what_is_added_says_which_credential_it_needs_and_whom_it_would_clash_with() -> None:
    url = ("--base-url", "https://orders.example.org")
    assert (
        "needs bearer `key`: run `gloveport auth add shop.key` or set GLOVEPORT_SHOP_KEY\n"
        in gloveport("add", "orders.json", "--name", "shop", *url).err
    )
    assert gloveport("add", "orders.json", "--name", "Shop", *url, "--yes").code == 0
    clash = gloveport("add", "orders.json", "--name", "shop", *url).err
    assert "GLOVEPORT_SHOP_KEY may be meant for the source Shop" in clash


def test_a_source_is_removed_after_a_question_and_the_rest_of_the_file_stays(project: Path) -> None:
    file = Path("gloveport.toml")
    text = '# mine\n[limits]\nmax_calls = 50 # enough\n\n[sources.a]\nfunctions = "people.py" # of the team\n'
    more = '\n[sources.b]\nopenapi = "orders.json"\n\n[sources.b.headers]\nX-Team = "blue"\n'
    file.write_text(text + more)
    unasked = gloveport("remove", "b")
    assert (unasked.code, "nobody can answer" in unasked.err) == (2, True)
    assert "-[sources.b]" in unasked.err
    assert file.read_text() == text + more
    assert gloveport("remove", "b", "--yes", "--json").document == {"ok": True, "file": str(project / file), "source": "b"}
    assert file.read_text().strip() == text.strip()
    again = gloveport("remove", "b", "--yes")
    assert (again.code, "there is no source `b`" in again.err) == (2, True)
    assert "the sources are a" in gloveport("remove", "something", "--yes").err
    assert gloveport("remove", "a", "--yes").code == 0
    assert "there are no sources yet" in gloveport("sources").err


def test_a_source_of_both_files_is_removed_from_the_one_that_was_named() -> None:
    assert gloveport("add", "people.py", "--yes").code == 0
    assert gloveport("add", "people.py", "--scope", "user", "--yes").code == 0
    which = gloveport("remove", "people", "--yes")
    assert (which.code, "--scope project" in which.err) == (2, True)
    assert gloveport("remove", "people", "--scope", "user", "--yes").code == 0
    assert gloveport("remove", "people", "--scope", "user", "--yes").code == 2
    assert gloveport("remove", "people", "--yes").code == 0
    assert "did you mean" not in gloveport("remove", "people").err


def test_a_file_that_is_no_toml_is_left_alone() -> None:
    Path("gloveport.toml").write_text("[sources.a\n")
    refused = gloveport("remove", "a", "--yes")
    assert (refused.code, "is not valid TOML" in refused.err) == (2, True)
    assert Path("gloveport.toml").read_text() == "[sources.a\n"
