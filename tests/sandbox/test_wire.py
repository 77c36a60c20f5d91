"""The wire decoder is total: any bytes yield frames or a WireError, within the budget (threats S5, S6, S13)."""

import random
import time
import tracemalloc

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.errors import WireError
from gloveport.sandbox.wire import FrameReader, pack, parse

MESSAGES = [
    ["ready", 1, "deno 2.9.8"],
    ["call", 1, "local.add", [{"a": 1, "b": [1, 2, {"c": 'x"]}'}]}]],
    ["log", "info", 'brackets in a string: [[[{{{ \\ " '],
    ["done", "value", {"$": "bytes", "v": "AAEC"}, {"pending": [1, 2], "unhandled": [], "dropped": 0}],
]


def frames_of(reader: FrameReader, pieces: list[bytes]) -> list[bytes]:
    return [frame for piece in pieces for frame in reader.feed(piece)]


@given(st.lists(st.binary(max_size=300), max_size=8), st.randoms(use_true_random=False))
def test_frames_come_out_whole_however_the_stream_is_cut(payloads: list[bytes], chance: random.Random) -> None:
    stream = b"".join(pack(payload) for payload in payloads)
    cuts = sorted(chance.randrange(len(stream) + 1) for _ in range(chance.randrange(6)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert frames_of(FrameReader(1000, 100_000), pieces) == payloads


def test_a_frame_over_the_limit_is_refused_by_its_header_alone() -> None:
    with pytest.raises(WireError) as caught:
        FrameReader(1000, 10_000).feed((1001).to_bytes(4))
    assert caught.value.code == "frame-too-large"


def test_an_announced_gigabyte_allocates_nothing() -> None:
    tracemalloc.start()
    with pytest.raises(WireError):
        FrameReader(16 * 2**20, 2**30).feed(b"\xff\xff\xff\xff" + b"x" * 100)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_a_stream_over_its_whole_budget_is_refused() -> None:
    reader = FrameReader(1000, 2500)
    reader.feed(pack(b"x" * 1000))
    reader.feed(pack(b"x" * 1000))
    with pytest.raises(WireError):
        reader.feed(pack(b"x" * 1000))


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_survive_the_way(message: list[object]) -> None:
    assert parse(orjson.dumps(message)) == message


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        b"[]",
        b"[1]",
        b'"x"',
        b"null",
        b"[null]",
        b'["a"',
        b"\xff\xfe",
        b'["a",NaN]',
        b'["a",1e999x]',
        b'["\xed\xa0\x80"]',
    ],
)
def test_what_is_not_a_message_is_an_error(payload: bytes) -> None:
    with pytest.raises(WireError):
        parse(payload)


@pytest.mark.parametrize(
    "payload",
    [
        b"[" * 1_000_000,
        b"[" * 1_000_000 + b"]" * 1_000_000,
        b'{"a":' * 500_000 + b"1" + b"}" * 500_000,
        b'["x",' + b"[" * 200 + b"]" * 200 + b"]",
        b"]" * 1_000_000,
        b"][" * 500_000,
    ],
    ids=["open", "deep", "objects", "just too deep", "closed", "inside out"],
)
def test_deep_nesting_is_refused_before_any_json_library_sees_it(payload: bytes) -> None:
    began = time.process_time()
    with pytest.raises(WireError):
        parse(payload)
    assert time.process_time() - began < 20


@pytest.mark.long
def test_mutated_frames_give_frames_or_a_wire_error_for_ten_seconds() -> None:
    chance = random.Random(20260101)
    seeds = [pack(orjson.dumps(message)) for message in MESSAGES]
    deadline = time.monotonic() + 10
    tracemalloc.start()
    while time.monotonic() < deadline:
        data = bytearray(chance.choice(seeds) + chance.choice(seeds))
        for _ in range(chance.randrange(1, 8)):
            position = chance.randrange(len(data))
            action = chance.randrange(3)
            if action == 0:
                data[position] = chance.randrange(256)
            elif action == 1:
                del data[position : position + chance.randrange(1, 9)]
            else:
                data[position:position] = chance.choice(
                    [b"[", b"{", b'"', b"\\", b"\x00", b"\xff\xff", b'{"$":"bytes","v":1}']
                )
            data = data or bytearray(b"x")
        try:
            for frame in FrameReader(4096, 65536).feed(bytes(data)):
                parse(frame)
        except WireError:
            pass
    assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("head", "named"),
    [
        (b'["done","value",[', "the result holds"),
        (b'["call",7,"shop.orders.create",[', "the argument list of tools.shop.orders.create holds"),
        (b'["emit",[', "an emitted value holds"),
        (b'["call",7,"\\u001b[31m",[', "a message holds"),
    ],
)
def test_a_message_of_too_many_values_is_named_by_what_it_carries(head: bytes, named: str) -> None:
    with pytest.raises(WireError, match=named):
        parse(head + b"[]," * 100_001 + b"1]]")


@pytest.mark.parametrize(("unit", "limit"), [(b"[],", "100,000 lists and objects"), (b"1,", "500,000 items")])
def test_a_message_of_too_many_values_is_refused_with_what_to_do(unit: bytes, limit: str) -> None:
    with pytest.raises(WireError, match=f"holds more than {limit}") as caught:
        parse(b'["emit",[' + unit * 600_000 + b"1]]")
    assert caught.value.code == "bad-value"
    assert caught.value.hint == "return a summary, or pass fewer values at a time"
