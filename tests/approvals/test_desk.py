"""Approvals are bound to run, call and arguments, used once, and expire (B7, B10, B11)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.approvals.desk import MAX_WAITING_OF_AN_AGENT, ApprovalDesk
from gloveport.approvals.request import Answer, ApprovalRequest, Scope, call_digest, shape_of
from gloveport.errors import ApprovalError, OptionError

YES = Answer(True, "ada")
ARGS = {"to": "x@example.com", "amount": 5}


def request(call: int = 1, args: dict[str, Any] | None = None, **other: Any) -> ApprovalRequest:
    now = time.time()
    made = ApprovalRequest("run1", call, "bank.pay", ARGS if args is None else args, "clerk", now, now + 60)
    return replace(made, **other)


async def asked(desk: ApprovalDesk, *requests: ApprovalRequest) -> list[asyncio.Task[Answer]]:
    tasks = [asyncio.create_task(desk.ask(one)) for one in requests]
    await asyncio.sleep(0)  # each starts, and waits
    assert len(desk.waiting) >= len(requests)
    return tasks


async def test_an_answer_reaches_the_call_that_waits() -> None:
    desk, one = ApprovalDesk(), request()
    (task,) = await asked(desk, one)
    assert desk.waiting == (one,)
    assert desk.answer(one.id, one.digest, YES) == one
    assert await task == YES
    assert desk.waiting == ()


async def test_requests_wait_in_the_order_in_which_their_calls_were_made() -> None:
    desk, first = ApprovalDesk(), request(1)
    later = request(2, asked=first.asked + 0.001)
    tasks = await asked(desk, later, first)
    assert desk.waiting == (first, later)
    for task in tasks:
        task.cancel()


async def test_a_refusal_carries_its_reason() -> None:
    desk, one = ApprovalDesk(), request()
    (task,) = await asked(desk, one)
    desk.answer(one.id, one.digest, Answer(False, "ada", reason="not today"))
    assert not (await task).approved
    assert (await task).reason == "not today"


async def test_an_approval_is_used_once() -> None:
    desk, one = ApprovalDesk(), request()
    (task,) = await asked(desk, one)
    desk.answer(one.id, one.digest, YES)
    with pytest.raises(ApprovalError, match="no request"):
        desk.answer(one.id, one.digest, YES)
    await task
    with pytest.raises(ApprovalError, match="no request"):
        desk.answer(one.id, one.digest, YES)
    again = request()
    (task,) = await asked(desk, again)
    with pytest.raises(ApprovalError, match="no request"):
        desk.answer(one.id, again.digest, YES)
    task.cancel()


@pytest.mark.parametrize(
    "other",
    [
        request(args={**ARGS, "amount": 6}),
        request(args={**ARGS, "amount": "5"}),
        request(args={**ARGS, "amount": 5.5}),
        request(args={**ARGS, "more": None}),
        request(args={}),
        request(tool="bank.pays"),
        request(tool="bank.pay\0"),
    ],
)
async def test_an_approval_of_other_arguments_or_another_tool_is_refused(other: ApprovalRequest) -> None:
    desk, one = ApprovalDesk(), request()
    (task,) = await asked(desk, one)
    with pytest.raises(ApprovalError, match="another call"):
        desk.answer(one.id, other.digest, YES)
    assert desk.waiting == (one,)
    task.cancel()


async def test_an_approval_of_one_run_says_nothing_about_the_same_call_of_another() -> None:
    desk, one, other = ApprovalDesk(), request(), request(run="run2")
    tasks = await asked(desk, one, other)
    desk.answer(one.id, one.digest, YES)
    await tasks[0]
    assert desk.waiting == (other,)
    tasks[1].cancel()


async def test_a_request_expires() -> None:
    now = time.time()
    desk = ApprovalDesk()
    with pytest.raises(ApprovalError, match="nobody answered within"):
        await desk.ask(request(asked=now, expires=now))
    assert desk.waiting == ()


async def test_an_answer_that_comes_too_late_is_refused() -> None:
    now = [1000.0]
    desk, one = ApprovalDesk(clock=lambda: now[0]), request(asked=1000.0, expires=1060.0)
    (task,) = await asked(desk, one)
    now[0] = 1060.0
    with pytest.raises(ApprovalError, match="has expired"):
        desk.answer(one.id, one.digest, YES)
    task.cancel()


async def test_a_cancelled_call_waits_no_more() -> None:
    desk, one, heard = ApprovalDesk(), request(), []
    desk.listen(lambda what, about: heard.append((what, about.id)))
    (task,) = await asked(desk, one)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ApprovalError, match="no request"):
        desk.answer(one.id, one.digest, YES)
    assert heard == [("asked", one.id), ("withdrawn", one.id)]


@pytest.mark.parametrize(
    "wrong",
    [{"approved": "no"}, {"approved": 1}, {"scope": "everything"}, {"scope": ""}, {"approver": None}, {"reason": 1}],
)
def test_an_answer_that_says_neither_yes_nor_no_or_has_no_known_scope_is_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        replace(YES, **wrong)


async def test_a_request_of_an_earlier_host_ends_when_a_standing_approval_covers_its_call() -> None:
    desk, earlier, heard, kept = ApprovalDesk(), request(), [], []
    desk.listen(lambda what, about: heard.append((what, about.id)))
    desk.keep_answer = lambda about, given: kept.append((about.id, given.approver))
    other = request(call=2)
    (task,) = await asked(desk, other)
    desk.answer(other.id, other.digest, replace(YES, scope="always"))
    await task
    assert (await desk.ask(request(), stored=(earlier, None))).approved
    assert heard[-1] == ("answered", earlier.id)
    assert kept == [(other.id, "ada"), (earlier.id, "ada")]


async def test_an_agent_that_asks_too_much_leaves_room_for_the_others() -> None:
    desk = ApprovalDesk()
    tasks = await asked(desk, *(request(call) for call in range(MAX_WAITING_OF_AN_AGENT)))
    with pytest.raises(ApprovalError, match="wait for a person already"):
        await desk.ask(request(-1))
    tasks += await asked(desk, request(agent="other"))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_two_approvers_at_once_give_one_answer() -> None:
    desk, one = ApprovalDesk(), request()
    (task,) = await asked(desk, one)
    desk.answer(one.id, one.digest, Answer(False, "ada", reason="first"))
    with pytest.raises(ApprovalError, match="no request"):
        desk.answer(one.id, one.digest, Answer(True, "bo", "always"))
    assert (await task).approver == "ada"
    assert desk.standing == ()


async def test_one_answer_for_a_group_covers_exactly_the_calls_that_were_shown() -> None:
    desk = ApprovalDesk()
    group = [request(call, {"n": call}) for call in range(20)]
    tasks = await asked(desk, *group)
    seen = {one.id: one.digest for one in group}
    (later,) = await asked(desk, request(99))
    with pytest.raises(ApprovalError, match="another call"):
        desk.answer_group({**seen, group[3].id: group[4].digest}, YES)
    assert len(desk.waiting) == 21
    assert desk.answer_group(seen, YES) == tuple(group)
    assert all([(await task).approved for task in tasks])
    assert [one.call for one in desk.waiting] == [99]
    with pytest.raises(ApprovalError, match="several calls"):
        desk.answer_group({}, replace(YES, scope="always"))
    later.cancel()


async def test_a_standing_approval_covers_the_same_shape_of_the_same_tool_and_agent_until_it_is_revoked() -> None:
    desk, one = ApprovalDesk(), request()
    (task,) = await asked(desk, one)
    desk.answer(one.id, one.digest, replace(YES, scope="always"))
    await task
    assert (await desk.ask(request(7, {"to": "y@example.com", "amount": 1_000}))).approved
    (standing,) = desk.standing
    for different in (
        request(args={}),
        request(args={"to": "x@example.com"}),
        request(args={**ARGS, "note": "x"}),
        request(args={**ARGS, "amount": "5"}),
        request(args={"to": ["x@example.com"], "amount": 5}),
        request(agent="other"),
        request(tool="bank.pay_all"),
    ):
        assert await desk.find_standing(different) is None
    assert desk.revoke(standing.id) == standing
    assert await desk.find_standing(request()) is None
    with pytest.raises(ApprovalError, match="no standing approval"):
        desk.revoke(standing.id)


@pytest.mark.parametrize(("scope", "calls"), [("run", [1, 2]), ("always", [1, 2, 3])])
async def test_a_standing_approval_covers_calls_that_wait_already(scope: Scope, calls: list[int]) -> None:
    desk, one = ApprovalDesk(), request()
    waiting = [request(2, {**ARGS, "amount": 9}), request(3, run="run2"), request(4, {}), request(5, tool="bank.read")]
    tasks = await asked(desk, one, *waiting)
    desk.answer(one.id, one.digest, replace(YES, scope=scope))
    given = [await task for task in tasks[: len(calls)]]
    assert {answer.scope for answer in given} == {scope}
    assert [each.call for each in desk.waiting] == [call for call in (2, 3, 4, 5) if call not in calls]
    for task in tasks:
        task.cancel()


async def test_a_standing_approval_of_no_arguments_is_not_one_of_any_arguments() -> None:
    desk, one = ApprovalDesk(), request(args={})
    (task,) = await asked(desk, one)
    desk.answer(one.id, one.digest, replace(YES, scope="always"))
    await task
    assert await desk.find_standing(request(args={})) is not None
    assert await desk.find_standing(request()) is None


async def test_changed_arguments_are_for_one_call_only() -> None:
    desk, one = ApprovalDesk(), request()
    (task,) = await asked(desk, one)
    with pytest.raises(ApprovalError, match="one call only"):
        desk.answer(one.id, one.digest, Answer(True, "ada", "always", args={"amount": 1}))
    desk.answer(one.id, one.digest, Answer(True, "ada", args={"amount": 1}))
    assert (await task).args == {"amount": 1}
    assert desk.standing == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-100, 100) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
ARGUMENTS = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


@given(ARGUMENTS, ARGUMENTS)
def test_equal_digests_mean_equal_arguments(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert call_digest("a.b", one) == call_digest("a.b", dict(reversed(one.items())))
    same = call_digest("a.b", one) == call_digest("a.b", other)
    assert same == (one == other and repr(_typed(one)) == repr(_typed(other)))


def _typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _typed(value[key]) for key in sorted(value)}
    return [_typed(item) for item in value] if isinstance(value, list) else value


@given(ARGUMENTS, st.text(max_size=3), JSON)
def test_a_further_argument_changes_the_shape(args: dict[str, Any], name: str, value: Any) -> None:
    assert shape_of(args) == shape_of(dict(args))
    if name not in args:
        assert shape_of({**args, name: value}) != shape_of(args)


def test_a_value_that_is_too_deep_has_the_shape_of_no_other() -> None:
    deep: Any = 1
    for _ in range(50):
        deep = [deep]
    assert shape_of({"a": deep}) != shape_of({"a": deep})


async def test_an_approval_for_a_run_ends_with_the_run() -> None:
    """A later run may have the same id, and approvals of runs that have ended must not use up the places of others."""
    desk, one = ApprovalDesk(), request()
    (task,) = await asked(desk, one)
    desk.answer(one.id, one.digest, Answer(True, "ada", scope="run"))
    await task
    assert (await desk.ask(request(2))).scope == "run"
    desk.end_run("run2")
    assert await desk.find_standing(request(3)) is not None
    desk.end_run("run1")
    assert await desk.find_standing(request(3)) is None
    assert desk.standing == ()


async def test_calls_of_a_group_are_not_said_to_have_happened_unless_nobody_knows() -> None:
    desk, one, two = ApprovalDesk(), request(), request(2, is_unknown=True)
    tasks = await asked(desk, one, two)
    with pytest.raises(ApprovalError, match="nobody knows"):
        desk.answer_group({each.id: each.digest for each in (one, two)}, Answer(True, "ada", happened=True, value=1))
    assert desk.waiting == (one, two)
    for task in tasks:
        task.cancel()
