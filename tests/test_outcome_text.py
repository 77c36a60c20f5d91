"""`print(outcome)` and `print(outcome.error)`: readable, complete, and harmless to a terminal."""

from gloveport.types import CallRecord, Failure, Outcome, Usage


def test_a_failure_reads_like_the_one_that_the_command_line_prints() -> None:
    failure = Failure(
        "program-failed", "KeyError", "'ttl'", 2, 5, "2 | row['ttl']\n  |     ^", hint="look", setting="raise wall_seconds",
        cause=Failure("program-failed", "ValueError", "below"),
    )  # fmt: skip
    assert str(failure).splitlines() == [
        "program-failed: KeyError: 'ttl'",
        "line 2, column 5",
        "2 | row['ttl']",
        "  |     ^",
        "hint: look",
        "setting: raise wall_seconds",
        "caused by: ValueError: below",
    ]


def test_a_tools_failure_names_the_tool_and_is_never_taken_for_ours() -> None:
    assert str(Failure("denied", "ToolError", "no", tool="pay", origin="tool")) == "tool error denied: tools.pay: no"


def test_a_failure_names_its_tool_once_however_the_program_spelled_it() -> None:
    message = "`tools.list_orders` has no parameter `x`"
    for tool in ("list_orders", "local.list_orders", "demo.list_orders"):
        assert str(Failure("bad-arguments", "ProgramError", message, tool=tool)) == f"bad-arguments: {message}"
    elsewhere = Failure("bad-arguments", "ProgramError", message, tool="shop.orders.list")
    assert str(elsewhere) == f"bad-arguments: tools.shop.orders.list: {message}"


def test_an_outcome_shows_its_status_value_and_warnings() -> None:
    calls = (CallRecord(1, "add", {}, "ok", 0.0),)
    outcome = Outcome("r", "completed", {"a": [1]}, calls=calls, usage=Usage(wall_seconds=0.25), warnings=("careful",))
    assert str(outcome).splitlines() == ["completed in 0.25 s with 1 call", "{'a': [1]}", "warning: careful"]
    failed = Outcome("r", "failed", error=Failure("time-limit", "Error", "too long"))
    assert str(failed).splitlines() == ["failed in 0.00 s with 0 calls", "time-limit: too long"]


def test_a_long_value_is_cut_visibly() -> None:
    assert str(Outcome("r", "completed", "x" * 5000)).endswith("… (5,002 characters)")


def test_text_of_a_program_can_not_control_the_terminal() -> None:
    shown = str(Failure("program-failed", "Error", "\x1b[2J\u202egone\r\x07 ünïcode"))
    assert shown == "program-failed: \\x1b[2J\\u202egone\\r\\x07 ünïcode"
    assert "\x1b" not in str(Outcome("r", "completed", warnings=("\x1b]0;x\x07",)))
