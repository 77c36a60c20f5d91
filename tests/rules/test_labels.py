"""Flow labels: what labels a tool, and after which reads a call could send private data out (B15, B16)."""

from __future__ import annotations

import pytest

from gloveport import tool
from gloveport.config import SourceConfig
from gloveport.errors import OptionError
from gloveport.rules.labels import LabelledRead, SourceLabels, check_stated, decision_after, labels_of, reads_behind
from gloveport.sources.fetch import READ
from gloveport.types import Decision, Tool


def labels(kind: str, *, writes: bool = False, credential: bool = True, **stated: list[str]) -> str:
    patterns = check_stated({pattern.replace("_", "*"): given for pattern, given in stated.items()}, "it")
    found = labels_of(Tool("it.issues.list", "", {}, kind=kind, writes=writes), SourceLabels(credential, patterns))
    return "none" if found is None else " ".join((*found.names, *(["carries"] if found.carries else [])))


def test_the_defaults_follow_from_the_kind_of_the_source_its_credential_and_whether_the_tool_writes() -> None:
    assert labels("openapi") == "private carries"
    assert labels("openapi", credential=False) == "carries"
    assert labels("openapi", writes=True) == "private outbound carries"
    assert labels("graphql", writes=True, credential=False) == "outbound carries"
    assert labels("mcp") == "private untrusted carries"
    assert labels("mcp", credential=False) == "untrusted carries"
    assert labels("function") == "none"
    assert labels("function", writes=True) == "outbound"
    assert labels("snippet") == "none"
    fetched = labels_of(READ, None)
    assert fetched is not None
    assert fetched.names == ("untrusted", "outbound")


def test_settings_add_labels_and_take_them_off_and_adding_wins() -> None:
    assert labels("openapi", _=["untrusted"]) == "private untrusted carries"
    assert labels("mcp", _=["not untrusted", "not private"]) == "carries"
    assert labels("mcp", _=["not untrusted"], issues_=["untrusted"]) == "private untrusted carries"
    assert labels("mcp", orders_=["not untrusted"]) == "private untrusted carries"
    assert labels("function", writes=True, _=["not outbound"]) == "none"


def test_labels_are_stated_in_code_and_a_wrong_one_is_refused() -> None:
    assert SourceConfig("it", "mcp", "http://x", labels=["private"]).labels == {"*": ("private",)}  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"@tool can't have the label 'privat'; did you mean `?private"):
        tool(labels=["privat"])
    with pytest.raises(OptionError, match="must be a list of labels, not 'private'"):
        tool(labels="private")
    with pytest.raises(OptionError, match="the source it can't have the label 'not'"):
        SourceConfig("it", "mcp", "http://x", labels={"*": ["not"]})  # type: ignore[dict-item]


HUB = LabelledRead("hub.file", ("private",), 1)
WEB = LabelledRead("web.page", ("untrusted",), 2)
BOTH = LabelledRead("hub.issue", ("private", "untrusted"), 3)


@pytest.mark.parametrize(
    ("reads", "address", "kind", "writes", "asks"),
    [
        ((HUB,), "hub.comment", "openapi", True, False),
        ((WEB,), "hub.comment", "openapi", True, False),
        ((HUB, WEB), "hub.comment", "openapi", True, True),
        ((BOTH,), "hub.comment", "openapi", True, True),
        ((BOTH,), "hub.file", "openapi", False, False),  # back to the service that it came from
        ((HUB, WEB), "web.page", "openapi", False, True),  # to another one
        ((HUB, WEB), "local.notes", "function", False, False),
        ((HUB, WEB), "local.mail", "function", True, True),
    ],
)
def test_private_and_untrusted_reads_make_a_call_ask_that_sends_data_out(
    reads: tuple[LabelledRead, ...], address: str, kind: str, writes: bool, asks: bool
) -> None:
    called = Tool(address, "", {}, kind=kind, writes=writes)
    found = labels_of(called, None)
    assert (found is not None and reads_behind(called, found, reads) == reads) is asks


def test_the_decision_names_the_reads_and_the_setting_and_a_denial_stays() -> None:
    decision = decision_after((HUB, WEB), Decision("allow"))
    assert (decision.verdict, decision.rule) == ("ask", "flow labels")
    assert decision.reason == "it could send out private data (of hub.file) on the advice of untrusted data (of web.page)"
    assert decision.setting == 'if you trust all that web returns, set `labels = ["not untrusted"]` under [sources.web]'
    assert decision_after((HUB, WEB), Decision("ask", "it writes")).reason.startswith("it writes; it could send out")
    denied = Decision("deny", "no")
    assert decision_after((HUB, WEB), denied) is denied


def test_many_reads_are_cut_to_the_latest_of_each_label() -> None:
    many = [LabelledRead(f"hub.file{at}", ("private",), at) for at in range(100)]
    called = Tool("hub.comment", "", {}, kind="openapi", writes=True)
    found = labels_of(called, None)
    assert found is not None
    shown = reads_behind(called, found, [LabelledRead("web.page", ("untrusted",), -1), *many])
    assert [one.tool for one in shown] == ["web.page", *(f"hub.file{at}" for at in range(90, 100))]
