"""Messages of a compromised Monty worker: any bytes are a message or a WireError, in bounded time and memory."""

import json
import struct
import time
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.errors import WireError
from gloveport.sandbox.engines.monty import messages, protobuf
from gloveport.sandbox.engines.monty.driver import Driver
from gloveport.sandbox.engines.monty.nodes import MAX_NODES, Table, TooHeavyError, Writer
from gloveport.types import ErrorValue

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(-(2**60), 2**60), inner),
    max_leaves=30,
)


@given(PLAIN)
def test_values_survive_the_way_through_a_table(value: Any) -> None:
    writer = Writer()
    index = writer.add(value)
    assert Table(writer.table()).take(index, 10**6) == value


def test_other_kinds_of_values_can_be_given_too() -> None:
    writer = Writer()
    places = [writer.add(value) for value in (date(2020, 1, 2), {1, 2}, ErrorValue("KeyError", "no"))]
    table = Table(writer.table())
    assert [table.take(place, 100) for place in places] == [date(2020, 1, 2), {1, 2}, ErrorValue("KeyError", "no")]


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_a_wire_error(data: bytes) -> None:
    try:
        messages.parse(data)
    except WireError as error:
        assert error.code in ("wire-violation", "bad-value")


@given(st.integers(1, 40), st.integers(1, 12), st.binary(max_size=60))
def test_a_message_of_a_known_kind_with_any_content_is_taken_or_refused(field: int, kind: int, data: bytes) -> None:
    content = protobuf.block(kind, data) + protobuf.block(7, protobuf.block(2, protobuf.block(field, data)))
    for message in (protobuf.block(kind, content), protobuf.block(kind, protobuf.block(2, content))):
        try:
            messages.parse(message)
        except WireError:
            continue


def test_a_short_table_that_stands_for_an_endless_value_is_too_heavy() -> None:
    nodes = [protobuf.number(5, 2)] + [protobuf.block(11, protobuf.packed(1, [n, n])) for n in range(200)]
    table = Table(b"".join(protobuf.block(2, node) for node in nodes))
    with pytest.raises(TooHeavyError):
        table.take(200, 2**24)
    assert table.take(3, 2**24) == [[[1, 1], [1, 1]], [[1, 1], [1, 1]]]


def test_a_text_that_is_held_many_times_counts_each_time() -> None:
    nodes = [protobuf.text(8, "x" * 1000), protobuf.block(11, protobuf.packed(1, [0] * 1000))]
    table = Table(b"".join(protobuf.block(2, node) for node in nodes))
    with pytest.raises(TooHeavyError):
        table.take(1, 10**6)


@pytest.mark.parametrize("refers", [0, 1, 7, 2**40])
def test_a_node_holds_only_nodes_before_it(refers: int) -> None:
    with pytest.raises(WireError, match="does not exist"):
        Table(protobuf.block(2, protobuf.block(11, protobuf.packed(1, [refers]))))


@pytest.mark.long
def test_a_table_holds_so_many_values_and_no_more() -> None:
    began = time.process_time()
    with pytest.raises(WireError, match="more than"):
        Table(protobuf.block(2, protobuf.block(2)) * (MAX_NODES + 1))
    assert time.process_time() - began < 60


@pytest.mark.parametrize(
    "node",
    [
        protobuf.block(17, protobuf.number(1, 99999) + protobuf.number(2, 13)),
        protobuf.block(19, protobuf.number(1, 2020)),
        protobuf.block(20, protobuf.number(1, 2**40)),
        protobuf.block(7, b"abc"),
        protobuf.number(8, 5),
        protobuf.text(29, "range(0, 10, 0)"),
        b"",
    ],
)
def test_values_that_are_none_are_refused(node: bytes) -> None:
    with pytest.raises(WireError):
        Table(protobuf.block(2, node))


def test_integers_made_to_collide_are_refused() -> None:
    writer = Writer()
    writer.add(dict.fromkeys([2**70 + n * (2**61 - 1) for n in range(2000)]))
    with pytest.raises(WireError, match="beyond"):
        Table(writer.table())


# A driver whose worker breaks the protocol.

START = {
    "code": "1",
    "entry": "body",
    "seed": "",
    "sources": ["local"],
    "has_input": False,
    "max_frame_bytes": 65536,
    "max_log_bytes": 1000,
    "env": {},
}


def started() -> tuple[Driver, list[bytes], list[Any]]:
    requests: list[bytes] = []
    frames: list[bytes] = []
    driver = Driver(requests.append, frames.append)
    driver.take(json.dumps(["start", 1_000_000, START]).encode())
    assert len(requests) == 1
    return driver, requests, frames


def said(field: int, content: bytes = b"") -> messages.Message:
    return messages.parse(protobuf.block(field, content))


def test_a_worker_that_speaks_while_it_is_to_wait_breaks_the_protocol() -> None:
    driver, _, _ = started()
    driver.hear(said(2, protobuf.text(1, "add") + protobuf.block(5, protobuf.block(1, _uuid(2))) + protobuf.number(6, 1)))
    with pytest.raises(WireError, match="out of turn"):
        driver.hear(said(6, protobuf.block(2, protobuf.block(2, protobuf.block(2)))))


def test_an_object_that_was_not_given_breaks_the_protocol() -> None:
    driver, _, _ = started()
    with pytest.raises(WireError, match="did not get"):
        driver.hear(said(2, protobuf.text(1, "add") + protobuf.block(5, protobuf.block(1, _uuid(77)))))


def _uuid(identity: int) -> bytes:
    return bytes(9) + identity.to_bytes(7, "big")


def test_nothing_is_heard_after_the_end() -> None:
    driver, requests, frames = started()
    done = said(6, protobuf.block(2, protobuf.block(2, protobuf.block(2))))
    driver.hear(done)
    driver.hear(done)
    driver.take(b'["timer",5]')
    assert [json.loads(frame)[:3] for frame in frames] == [["done", "value", None]]
    assert len(requests) == 1


def test_a_sleep_of_any_length_asks_for_one_timer() -> None:
    for seconds, asked in (
        (float("nan"), None),
        (-1.0, None),
        (0.5, 1_500_000),
        (float("inf"), 315360000000000 + 1_000_000),
    ):
        driver, requests, frames = started()
        driver.hear(said(3, protobuf.block(27, protobuf.double(1, struct.pack("<d", seconds)))))
        assert [json.loads(frame) for frame in frames] == ([] if asked is None else [["timer", asked]])
        assert len(requests) == (2 if asked is None else 1)


def test_events_wait_until_the_guest_is_quiet_and_are_counted() -> None:
    driver, requests, _ = started()
    event = b'["reply",1000001,1,true,5]'
    driver.take(event)
    assert driver.queued == len(event)
    driver.hear(said(2, protobuf.text(1, "add") + protobuf.block(5, protobuf.block(1, _uuid(1))) + protobuf.number(6, 1)))
    assert driver.queued == 0
    assert len(requests) == 2


def test_the_clock_is_the_hosts_and_never_goes_back() -> None:
    driver, requests, _ = started()
    readings = []
    for _ in range(3):
        driver.hear(said(3, protobuf.block(26, protobuf.text(1, "time.time"))))
        table = Table(dict(protobuf.read(dict(protobuf.read(requests[-1][4:]))[4]))[3])  # type: ignore[arg-type]
        readings.append(table.take(0, 100))
    assert readings == [1.0, 1.000001, 1.000002]
    assert datetime.fromtimestamp(readings[0], UTC).year == 1970
