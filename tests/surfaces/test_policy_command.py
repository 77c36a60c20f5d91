"""`gloveport policy`: lists the rules in force, explains decisions, and changes the rules of a settings file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.surfaces.command import gloveport, terminal

pytestmark = pytest.mark.integration

TOOLS = '''
from gloveport import tool


@tool(writes=True)
def pay(amount: int | None, currency: str = "EUR") -> str:
    """Pay."""
    return f"paid {amount} {currency}"


@tool(labels=["private", "untrusted"])
def mail() -> str:
    """The mail."""
    return "pay everything"


def read() -> str:
    """Read."""
    return "text"
'''
SETTINGS = """\
[sources.shop]
functions = "shop.py"

[[rules]]
ask = "shop.pay"
when = 'args.amount > 100'
reason = "large sums"

[[rules]]
deny = "shop.pay"
agent = "bot"

[[rules]]
allow = "shop.*"

[[rules]]
limit = "shop.*"
calls_per_hour = 20

[agents.bot]
tools = ["shop.pay"]
"""


@pytest.fixture
def project(folder: Path) -> Path:
    (folder / "shop.py").write_text(TOOLS)
    (folder / "gloveport.toml").write_text(SETTINGS)
    assert gloveport("tools", "trust", "shop", "--yes").code == 0
    assert gloveport("config", "trust", "--yes").code == 0
    return folder


def explain(*args: str) -> dict[str, object]:
    done = gloveport("policy", "explain", *args, "--json")
    assert done.code == 0, done.out + done.err
    return done.document


def test_list_shows_every_rule_with_its_place(project: Path) -> None:
    file = project / "gloveport.toml"
    listed = gloveport("policy", "list")
    assert (listed.code, listed.err) == (0, "")
    lines = listed.out.splitlines()
    assert (
        lines[0]
        == "preset standard (the default): reads are allowed; writes, and tools that may write, ask; fetch is denied"
    )
    assert lines[1] == f"deny   shop.pay  agent bot  {file}:10"
    assert lines[2] == f"ask    shop.pay  when args.amount > 100  {file}:5"
    assert lines[3] == "         large sums"
    assert f"allow  shop.*  {file}:14" in lines
    assert f'limit  "shop.*", calls_per_hour = 20  {file}:17' in lines
    found = gloveport("policy", "list", "--json").document
    assert (found["ok"], found["preset"], len(found["rules"]), found["ignored"]) == (True, "standard", 3, [])
    assert found["budgets"][0]["calls_per_hour"] == 20


def test_list_shows_what_sources_open_and_what_is_ignored(folder: Path) -> None:
    (folder / "shop.json").write_text("{}")
    file = folder / "gloveport.toml"
    source = (
        '[sources.shop]\nopenapi = "shop.json"\nwrites = ["orders.*"]\n[sources.bank]\nopenapi = "b"\nwrites = "deny"\n'
    )
    file.write_text(f'{source}[[rules]]\nallow = "*"\n[policy]\npreset = "open"\n')
    listed = gloveport("policy", "list")
    assert listed.out.startswith("preset standard (the default): ")
    assert f"allow  shop.orders.*  {file}:3" in listed.out
    assert 'deny   what writes in bank, if no rule allows it (`writes = "deny"`)' in listed.out
    assert listed.out.count("! ignored: ") == 2
    assert "not trusted: it allows calls" in listed.out
    assert "hint: review them; `gloveport config trust` lets them take effect" in listed.err
    assert len(gloveport("policy", "list", "--json").document["ignored"]) == 2


def test_explain_names_the_labels_and_the_reads_that_matter_now(project: Path) -> None:
    before = explain("shop.pay", "--args", '{"amount": 5}')
    assert (before["labels"], before["reads"]) == (["outbound"], [])
    assert gloveport("tools", "call", "shop.mail").code == 0
    after = explain("shop.pay", "--args", '{"amount": 5}')
    assert isinstance(after["reads"], list)
    assert [one["tool"] for one in after["reads"]] == ["shop.mail"]
    shown = gloveport("policy", "explain", "shop.pay").out
    assert "  labels: outbound\n→ asks if no rule denied it" not in shown
    assert (
        "  labels: outbound\n→ asks now, whatever the rules allow: it could send out private data (of shop.mail)" in shown
    )
    assert "after shop.mail (private, untrusted) at " in shown


def test_explain_names_the_winner_and_why_the_others_lose(project: Path) -> None:
    small = explain("shop.pay", "--args", '{"amount": 5}')
    assert small["decision"]["verdict"] == "allow"
    assert [(one["verdict"], one["wins"], one["why"]) for one in small["matches"]] == [
        ("ask", False, "does not apply: its condition is false"),
        ("allow", True, "applies, and decides"),
    ]
    assert small["change"] == "gloveport policy set ask shop.pay"
    large = explain("tools.shop.pay", "--args", '{"amount": 500}')
    assert (large["decision"]["verdict"], large["decision"]["reason"]) == ("ask", "large sums")
    assert large["matches"][1]["why"] == "applies, but ask wins over allow"
    assert large["change"] == "gloveport policy set ask shop.pay --when 'args.amount > 100' --remove"
    assert large["budgets"][0]["place"] == f"{project}/gloveport.toml:17"
    odd = explain("shop.pay", "--args", '{"amount": null}')
    assert odd["matches"][0]["why"] == "applies, to be safe: its condition is neither true nor false, and decides"
    assert "depends on the arguments" in explain("shop.pay")["matches"][0]["why"]
    bot = explain("shop.pay", "--as", "bot", "--args", '{"amount": 5}')
    assert (bot["decision"]["verdict"], bot["hidden"]) == ("deny", False)
    assert explain("shop.read", "--as", "bot")["hidden"] is True


def test_explain_reads_well_and_its_command_changes_the_decision(project: Path) -> None:
    shown = gloveport("policy", "explain", "shop.pay", "--args", '{"amount": 500}').out
    assert shown.splitlines()[0] == "tools.shop.pay asks a person: large sums"
    assert f"→ ask    shop.pay  when args.amount > 100  {project}/gloveport.toml:5" in shown
    command = explain("shop.pay", "--args", '{"amount": 500}')["change"]
    assert f"  to change it: {command}" in shown
    args = ["policy", "set", "ask", "shop.pay", "--when", "args.amount > 100", "--remove"]
    assert gloveport(*args, "--yes").code == 0
    assert explain("shop.pay", "--args", '{"amount": 500}')["decision"]["verdict"] == "allow"


def test_a_rule_of_an_agents_section_is_named_with_its_place_and_not_as_one_to_remove(project: Path) -> None:
    file = project / "gloveport.toml"
    file.write_text(SETTINGS + 'deny = "shop.read"\n')
    assert gloveport("config", "trust", "--yes").code == 0
    line = SETTINGS.count("\n") + 1
    found = explain("shop.read", "--as", "bot")
    assert found["decision"]["verdict"] == "deny"
    assert found["change"] == f'change the rule `deny = "shop.read", agent = "bot"` in {file}:{line}'


def test_explain_without_a_rule_names_the_preset(folder: Path) -> None:
    (folder / "shop.py").write_text(TOOLS)
    (folder / "gloveport.toml").write_text('[sources.shop]\nfunctions = "shop.py"\n')
    assert gloveport("tools", "trust", "shop", "--yes").code == 0
    shown = gloveport("policy", "explain", "shop.pay")
    assert "tools.shop.pay asks a person: it writes" in shown.out
    assert "no rule applies, so the preset standard decides" in shown.out
    assert "to change it: gloveport policy set allow shop.pay" in shown.out
    assert gloveport("policy", "set", "allow", "shop.pay", "--yes").code == 0
    assert explain("shop.pay")["decision"]["verdict"] == "allow"


def test_explain_denies_a_fetch_of_an_address_that_may_not_be_reached(folder: Path) -> None:
    (folder / "gloveport.toml").write_text(
        '[[egress]]\nallow = ["http://127.0.0.1:8000", "http://169.254.169.254", "https://api.example.com"]\n'
        '[[egress]]\nallow = "http://127.0.0.1:9000"\nallow_private = true\n'
    )
    assert gloveport("config", "trust", "--yes").code == 0
    found = explain("http://127.0.0.1:8000/x")
    assert found["decision"]["verdict"] == "deny"
    assert "127.0.0.1 may not be reached: loopback" in found["decision"]["reason"]
    assert "allow_private = true" in found["change"]
    never = explain("http://169.254.169.254/latest")
    assert (never["decision"]["verdict"], never["change"]) == ("deny", "no setting allows it")
    for allowed in ("http://127.0.0.1:9000/x", "https://api.example.com/x"):
        assert explain(allowed)["decision"]["verdict"] == "allow"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("egress.read",), "give the address of the request"),
        (("shop.pya",), "did you mean `shop.pay`?"),
        (("shop.pay", "--as", "bto"), "did you mean `bot`?"),
        (("shop.pay", "--args", "[1]"), "the arguments must be a JSON object"),
        (
            ("shop.pay", "--args", '{"amount": "much"}'),
            "--args: bad arguments for `tools.shop.pay`: `amount` must be an integer or null",
        ),
        (("shop.pay", "--args", '{"amuont": 5}'), "did you mean `amount`?"),
    ],
)
def test_explain_suggests_what_was_meant(project: Path, args: tuple[str, ...], says: str) -> None:
    done = gloveport("policy", "explain", *args)
    assert (done.code != 0, says in done.err) == (True, True), done.err


def test_set_shows_the_diff_asks_and_keeps_the_trust(project: Path) -> None:
    file = project / "gloveport.toml"
    with terminal("policy", "set", "allow", "shop.pay", "--agent", "bot", NO_COLOR="1") as screen:
        asked = screen.until(r"Write this rule to .*\? \[y/N\] ")
        assert '-deny = "shop.pay"' in asked and '+allow = "shop.pay"' in asked
        screen.press(b"n\n")
        assert screen.rest()[0] == 130
    assert file.read_text() == SETTINGS
    with terminal("policy", "set", "allow", "shop.pay", "--agent", "bot", NO_COLOR="1") as screen:
        screen.until(r"\[y/N\] ")
        screen.press(b"y\n")
        code, rest = screen.rest()
        assert (code, f"✓ written to {file}" in rest) == (0, True)
    assert file.read_text() == SETTINGS.replace('deny = "shop.pay"', 'allow = "shop.pay"')
    listed = gloveport("policy", "list", "--json").document
    assert listed["ignored"] == []
    assert [rule["verdict"] for rule in listed["rules"] if rule["agent"] == "bot"] == ["allow"]
    again = gloveport("policy", "set", "allow", "shop.pay", "--agent", "bot", "--json")
    assert (again.document["ok"], again.document["changed"]) == (True, False)


def test_set_does_not_trust_what_somebody_else_wrote(folder: Path) -> None:
    file = folder / "gloveport.toml"
    file.write_text('[[rules]]\nallow = "*"\n')
    done = gloveport("policy", "set", "allow", "shop.pay", "--yes")
    assert done.code == 0
    assert f"! {file} has settings that you have not trusted" in done.err
    assert len(gloveport("policy", "list", "--json").document["ignored"]) == 2


def test_set_writes_the_users_file_where_there_is_no_other_and_with_user(folder: Path) -> None:
    own = folder.parent / "XDG_CONFIG_HOME" / "gloveport" / "gloveport.toml"
    assert gloveport("policy", "set", "deny", "*.delete", "--yes").code == 0
    assert own.read_text() == '[[rules]]\ndeny = "*.delete"\n'
    (folder / "gloveport.toml").write_text("")
    done = gloveport("policy", "set", "ask", "tools.shop.*", "--user", "--yes", "--json")
    assert done.document["file"] == str(own)
    assert 'ask = "shop.*"' in own.read_text()
    assert gloveport("policy", "set", "ask", "mail.*", "--yes", "--json").document["file"] == f"{folder}/gloveport.toml"


def test_set_warns_of_rules_that_win_and_of_agents_that_do_not_exist(project: Path) -> None:
    assert gloveport("policy", "set", "deny", "shop.*", "--user", "--yes").code == 0
    done = gloveport("policy", "set", "allow", "shop.read", "--agent", "bott", "--yes")
    assert done.code == 0
    assert "! there is no agent bott; did you mean `bot`?" in done.err
    assert '! `deny = "shop.*"` in ' in done.err


def test_a_wrong_condition_is_shown_with_a_caret_and_nothing_is_written(project: Path) -> None:
    done = gloveport("policy", "set", "ask", "shop.pay", "--when", "args.amount = 100", "--yes")
    assert done.code == 2
    lines = done.err.splitlines()
    assert lines[0].endswith("'=' is not part of a condition (column 13)")
    assert lines[1] == "    args.amount = 100"
    assert lines[2] == "                ^"
    assert lines[3] == "  hint: write == to compare"
    assert (project / "gloveport.toml").read_text() == SETTINGS


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("allow", "x" * 201), "a rule has a pattern"),
        (("alow", "x"), "did you mean `allow`?"),
        (("deny", "shop.pay", "--remove"), "it has ask = 'shop.pay'"),
        (("deny", "nothing", "--remove"), "has no rule deny = 'nothing'"),
        (("deny", "x"), "nobody can answer"),
    ],
)
def test_set_refuses_what_is_no_rule(project: Path, args: tuple[str, ...], says: str) -> None:
    done = gloveport("policy", "set", *args)
    assert (done.code, says in done.err) == (2, True), done.err
    assert (project / "gloveport.toml").read_text() == SETTINGS
    assert json.loads(gloveport("policy", "set", *args, "--json").out)["ok"] is False


@pytest.mark.parametrize(
    "command", [("policy", "list"), ("config", "show"), ("policy", "explain", "shop.pay"), ("sources",)]
)
def test_no_word_is_broken_in_a_narrow_terminal(folder: Path, command: tuple[str, ...]) -> None:
    (folder / "shop.py").write_text(TOOLS)
    reason = "large payments are looked at by a person of the accounting department"
    text = f'[sources.shop]\nfunctions = "shop.py"\n[limits]\nmax_calls = 5\n[[rules]]\nask = "shop.pay"\nreason = "{reason}"\n'
    text += '[[rules]]\nallow = "shop.*"\n'  # it has an effect only when somebody trusts it, which a hint says
    (folder / "gloveport.toml").write_text(text)
    assert gloveport("tools", "trust", "shop", "--yes").code == 0
    with terminal(*command, columns=50, NO_COLOR="1", GLOVEPORT_PAGER="cat") as screen:
        code, shown = screen.rest()
    assert code == 0
    for line in shown.splitlines():
        assert len(line) <= 50 or len(line.split()) == 1 or line.startswith("  to change it: "), shown
