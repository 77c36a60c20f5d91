"""Rules over the addresses that `fetch` may reach."""

from pathlib import Path

import pytest

from gloveport import EgressRule, OptionError, Rule, Rules
from gloveport.approvals.request import ApprovalRequest, StandingApproval
from gloveport.config import Config, load_config
from gloveport.rules.tables import read_egress_rule
from gloveport.sources.fetch import READ, WRITE
from gloveport.types import CallRequest, Decision
from gloveport.urls import parse

URL = "https://api.example.com/v1/items?q=1"


def decide(rules: Rules, url: str = URL, method: str = "GET", agent: str = "default") -> Decision:
    tool = READ if method == "GET" else WRITE
    request = CallRequest(tool, {"method": method, "url": url}, agent)
    assert rules.settled(tool, agent) is None
    assert rules.explain(request).decision == rules.decide(request)
    return rules.decide(request)


@pytest.mark.parametrize("preset", ["strict", "standard"])
def test_what_no_rule_names_is_denied_and_the_person_reads_the_setting(preset: str) -> None:
    decision = decide(Rules(preset=preset))  # pyright: ignore[reportArgumentType]
    assert decision.verdict == "deny"
    assert decision.reason == "the user has not allowed GET https://api.example.com"
    assert 'allow = "https://api.example.com"' in (decision.setting or "")
    assert "[[" not in decision.reason


def test_the_open_preset_allows_and_a_rule_still_denies() -> None:
    assert decide(Rules(preset="open")).verdict == "allow"
    assert decide(Rules([EgressRule("https://*.example.com", "deny")], "open")).verdict == "deny"


@pytest.mark.parametrize(
    ("pattern", "covered", "others"),
    [
        ("https://api.example.com", [URL, "https://API.example.com:443/"], ["http://api.example.com/", "https://api.example.com:8443/"]),
        ("https://api.example.com", [], ["https://evil-api.example.com/", "https://api.example.com.evil.net/", "https://example.com/"]),
        ("https://*.example.com", [URL, "https://a.b.example.com/"], ["https://example.com/", "https://badexample.com/"]),
        ("https://api.example.com:*", [URL, "https://api.example.com:8443/"], ["http://api.example.com/"]),
        ("https://*", [URL, "https://other.net/"], ["http://other.net/", "https://other.net:444/"]),
        ("http://[::1]:8000", ["http://[0:0::1]:8000/"], ["http://[::1]/", "http://[::2]:8000/"]),
        ("http://127.0.0.1:8000", ["http://127.0.0.1:8000/x"], ["http://127.1:8000/", "http://2130706433:8000/", "http://localhost:8000/"]),
        ("*", [URL, "http://anything.net:1234/"], []),
    ],
)  # fmt: skip
def test_a_pattern_covers_exactly_its_origins(pattern: str, covered: list[str], others: list[str]) -> None:
    rules = Rules([EgressRule(pattern, "allow")])
    assert [decide(rules, url).verdict for url in covered] == ["allow"] * len(covered)
    assert [decide(rules, url).verdict for url in others] == ["deny"] * len(others)


def test_a_rule_is_about_its_methods_and_agents() -> None:
    rules = Rules([EgressRule("*", "allow", methods=("GET",)), EgressRule("*", "ask", "bot-*", methods=("POST",))])
    assert decide(rules).verdict == "allow"
    assert decide(rules, method="POST").verdict == "deny"
    assert decide(rules, method="POST", agent="bot-1").verdict == "ask"


def test_rules_over_tools_tighten_and_never_open() -> None:
    assert decide(Rules([Rule("*", "allow")])).verdict == "deny"
    assert decide(Rules([Rule("*", "ask")])).verdict == "deny"
    opened = EgressRule("*", "allow")
    assert decide(Rules([opened, Rule("egress.*", "ask")])).verdict == "ask"
    assert decide(Rules([opened, Rule("egress.write", "deny")]), method="POST").verdict == "deny"
    assert decide(Rules([opened, Rule("egress.*", "deny", when='args.url matches "*secret*"')])).verdict == "allow"
    denied = Rules([opened, Rule("egress.*", "deny", when='args.url matches "*items*"')])
    assert decide(denied).verdict == "deny"
    assert decide(denied, url=URL.replace("items", "it%65ms")).verdict == "deny"


@pytest.mark.parametrize("url", ["ftp://example.com/", "http://a@b/", "nonsense", "http://example.com\\x/"])
def test_what_is_no_plain_url_is_denied_whatever_the_rules_say(url: str) -> None:
    assert decide(Rules([EgressRule("*", "allow")], "open"), url).verdict == "deny"


def test_a_grant_of_private_addresses_is_for_one_host_and_port() -> None:
    rules = Rules([EgressRule("http://127.0.0.1:8000", "allow", allow_private=True), EgressRule("*", "allow")])
    granted = [rules.reaches_private(parse(url), "GET", "default") for url in (
        "http://127.0.0.1:8000/", "http://127.0.0.1:8001/", "http://localhost:8000/", "http://2130706433:8000/", URL,
    )]  # fmt: skip
    assert granted == [True, False, False, False, False]
    for pattern in ("*", "http://*:8000", "http://127.0.0.1", "http://127.0.0.1:*", "http://*.corp:80"):
        with pytest.raises(OptionError, match="one host and one port"):
            EgressRule(pattern, "allow", allow_private=True)
    with pytest.raises(OptionError, match="one host and one port"):
        EgressRule("http://127.0.0.1:8000", "deny", allow_private=True)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"alow": "*"}, "there is no key `alow` in [[egress]]; did you mean `allow`?"),
        ({"allow": "*", "ask": "*"}, "has both ask and allow"),
        ({"methods": ["GET"]}, "says neither allow nor ask nor deny"),
        ({"allow": "api.example.com"}, "is not a pattern over origins"),
        ({"allow": "https://api.example.com/v1"}, "is not a pattern over origins"),
        ({"allow": "https://a*b.com"}, "is not a pattern over origins"),
        ({"allow": "*", "methods": ["get"]}, "'get' is not an HTTP method"),
        ({"allow": "*", "methods": "GET"}, "`methods` of an egress rule must be a list of texts"),
        ({"allow": "*", "allow_private": "yes"}, "must be true or false"),
        ({"allow": []}, "a pattern over origins, or a list of them"),
    ],
)
def test_a_wrong_table_is_explained(table: dict[str, object], says: str) -> None:
    with pytest.raises(OptionError) as error:
        read_egress_rule(table)
    assert says in error.value.message


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def load(project: str, user: str = "") -> Config:
    Path("user.toml").write_text(user)
    Path("gloveport.toml").write_text(project)
    return load_config(user=Path("user.toml").absolute())


@pytest.mark.usefixtures("in_tmp")
def test_a_project_opens_no_address_until_it_is_trusted() -> None:
    theirs = '[[egress]]\nallow = "*"\n[[egress]]\nask = "https://a.com"\n[[egress]]\ndeny = "https://b.com"\n'
    found = load(theirs, '[[egress]]\nallow = "https://own.com"\n')
    assert [each.name for each in found.ignored] == ["egress.0", "egress.1"]
    assert [str(rule) for rule in found.governance.rules] == ['allow = "https://own.com"', 'deny = "https://b.com"']


@pytest.mark.usefixtures("in_tmp")
def test_an_error_names_the_file_and_line() -> None:
    with pytest.raises(OptionError) as error:
        load("", '[[egress]]\nallow = "https://a.com"\n\n[[egress]]\nallow = "a.com"\n')
    assert error.value.message.startswith(f"{Path.cwd()}/user.toml:5: ")
    assert error.value.hint == 'write the scheme: "https://a.com"'


def test_a_standing_approval_covers_one_method_and_origin() -> None:
    def asked(method: str, url: str) -> ApprovalRequest:
        return ApprovalRequest("run", 1, "egress.write", {"method": method, "url": url, "headers": {}}, "default", 0, 1)

    given = StandingApproval("egress.write", "default", asked("POST", URL).shape, "ada", 0)
    assert given.covers(asked("POST", "https://api.example.com/other"))
    assert not given.covers(asked("POST", "https://evil.com/v1/items?q=1"))
    assert not given.covers(asked("PUT", URL))
