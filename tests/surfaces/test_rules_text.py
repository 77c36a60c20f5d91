"""Editing the `[[rules]]` of a settings file: exactly one rule changes, and every comment stays."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from gloveport.errors import OptionError
from gloveport.surfaces.policy.rules_text import StatedRule, with_rule, without_rule

FILE = Path("gloveport.toml")
TEXT = """\
# head
[sources.shop]
openapi = "shop.json"  # the shop

# about the first
[[rules]]
deny = "shop.delete"   # never
reason = "old"

# about the second
[[rules]]
ask = ["shop.pay", "shop.refund"]
when = 'args.amount > 100'

# limits
[limits]
max_calls = 3
"""
PAY_WHEN = StatedRule("ask", "shop.pay", when="args.amount > 100")


def changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    old, new = before.splitlines(), after.splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


def test_a_new_rule_is_added_after_the_others_and_before_the_comments_of_what_follows() -> None:
    after = with_rule(FILE, TEXT, StatedRule("allow", "shop.orders.*", "bot", 'args.to == "me"', "ours"))
    table = '[[rules]]\nallow = "shop.orders.*"\nagent = "bot"\nwhen = \'args.to == "me"\'\nreason = "ours"\n'
    assert f"when = 'args.amount > 100'\n\n{table}\n# limits\n" in after
    assert after.replace(f"\n{table}", "") == TEXT


def test_a_file_without_rules_gets_them_at_its_end() -> None:
    assert with_rule(FILE, "", StatedRule("deny", "*")) == '[[rules]]\ndeny = "*"\n'
    assert with_rule(FILE, "[limits]", StatedRule("deny", "*")) == '[limits]\n\n[[rules]]\ndeny = "*"\n'
    assert with_rule(FILE, "[limits]\r\n", StatedRule("ask", "a")) == '[limits]\r\n\r\n[[rules]]\r\nask = "a"\r\n'


def test_another_verdict_for_the_same_calls_changes_the_rule_in_place() -> None:
    after = with_rule(FILE, TEXT, StatedRule("allow", "shop.delete"))
    assert changed_lines(TEXT, after) == (['deny = "shop.delete"   # never'], ['allow = "shop.delete"   # never'])
    with_reason = with_rule(FILE, TEXT, StatedRule("deny", "shop.delete", reason="new"))
    assert changed_lines(TEXT, with_reason) == (['reason = "old"'], ['reason = "new"'])
    assert with_rule(FILE, TEXT, StatedRule("deny", "shop.delete")) == TEXT


def test_one_pattern_of_several_moves_to_a_rule_of_its_own() -> None:
    after = with_rule(FILE, TEXT, StatedRule("deny", "shop.pay", when="args.amount > 100"))
    rules = tomllib.loads(after)["rules"]
    assert rules[1]["ask"] == ["shop.refund"]
    assert rules[2] == {"deny": "shop.pay", "when": "args.amount > 100"}
    assert "# about the second" in after


def test_a_rule_is_removed_with_its_lines_and_nothing_else() -> None:
    after = without_rule(FILE, TEXT, StatedRule("deny", "shop.delete"))
    assert changed_lines(TEXT, after)[1] == []
    assert all(comment in after for comment in ("# about the first", "# about the second", "# limits", "# the shop"))
    assert len(tomllib.loads(after)["rules"]) == 1
    both = without_rule(FILE, without_rule(FILE, TEXT, PAY_WHEN), StatedRule("ask", "shop.refund", when=PAY_WHEN.when))
    assert [rule.get("deny") for rule in tomllib.loads(both)["rules"]] == ["shop.delete"]


@pytest.mark.parametrize(
    "text",
    [
        'rules = [{deny = "a"}]\n',
        '[[rules]]\ndeny = [\n  "a",\n  "b",\n]\n',
        'note = """\n[[rules]]\ndeny = "a"\n"""\n[[rules]]\ndeny = "a"\n',
    ],
)
def test_what_can_not_be_edited_line_by_line_is_left_alone(text: str) -> None:
    for edit in (without_rule, with_rule):
        verdict = "deny" if edit is without_rule else "allow"
        with pytest.raises(OptionError, match="can't be changed without changing more"):
            edit(FILE, text, StatedRule(verdict, "a"))
