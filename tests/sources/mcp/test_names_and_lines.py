"""Names that programs can write, from whatever a server calls its tools; and lines of bounded length."""

import keyword

from hypothesis import given
from hypothesis import strategies as st

from gloveport.sources.mcp.compile.names import RESERVED_GROUP_NAMES, identifiers
from gloveport.sources.mcp.line_splitter import LineSplitter, OverlongLine
from gloveport.surfaces.mcp import stdio_transport
from gloveport.tool_names import problem_with

NAMES = st.lists(st.text(max_size=200) | st.from_regex(r"[a-c._-]{1,4}", fullmatch=True), max_size=30)


@given(NAMES)
def test_every_name_becomes_a_legal_one_of_its_own(names: list[str]) -> None:
    found = identifiers(names)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(found)
    for identifier in found.values():
        assert problem_with(identifier) is None
        assert not keyword.iskeyword(identifier)
        assert identifier not in RESERVED_GROUP_NAMES


@given(NAMES)
def test_names_do_not_depend_on_the_order_of_the_list(names: list[str]) -> None:
    assert identifiers(names) == identifiers(names[::-1])


def test_legal_names_stay_and_others_keep_their_words() -> None:
    assert identifiers(["browser_navigate", "get-sum", "admin.users list", "createIssue", "delete"]) == {
        "browser_navigate": "browser_navigate",
        "get-sum": "get_sum",
        "admin.users list": "admin_users_list",
        "createIssue": "createIssue",
        "delete": "delete",
    }


def test_a_name_that_another_tool_would_like_to_have_stays_with_its_owner() -> None:
    found = identifiers(["get-sum", "get_sum"])
    assert found["get_sum"] == "get_sum"
    assert found["get-sum"].startswith("get_sum_")


@given(st.lists(st.binary(max_size=40)), st.integers(1, 20), st.integers(1, 50))
def test_lines_are_those_of_the_stream_however_it_is_cut(lines: list[bytes], cut: int, most: int) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    stream = b"".join(line + b"\n" for line in lines)
    cutter = LineSplitter(most)
    found = [line for at in range(0, len(stream), cut) for line in cutter.feed(stream[at : at + cut])]
    assert [None if isinstance(line, OverlongLine) else line for line in found] == [
        line if len(line) <= most else None for line in lines
    ]


def test_an_overlong_line_tells_whose_it_was_if_it_says_so_at_an_edge() -> None:
    def whose(line: bytes) -> int | None:
        (found,) = LineSplitter(10).feed(line + b"\n")
        assert isinstance(found, OverlongLine)
        return found.id

    assert whose(b'{"jsonrpc":"2.0","id":7,"result":{"id":8}}') == 7
    assert whose(b'{"jsonrpc": "2.0", "result": {"id": 8, "x": 1}, "id": 7}') == 7
    assert whose(b'{"result": {"id": 8, "x": 1}}') is None
    assert whose(b"x" * 100) is None


def test_the_bytes_of_a_long_line_are_joined_once() -> None:
    """A line of 16 MB in small chunks costs linear work: no chunk is looked at again when the next one comes."""
    splitter = LineSplitter(16 * 1024 * 1024)
    chunk = b"x" * 4096
    for number in range(1, 4097):
        assert list(splitter.feed(chunk)) == []
        assert splitter._pieces[-1] == chunk
        assert len(splitter._pieces) == number
    (line,) = splitter.feed(b"\n")
    assert isinstance(line, bytes) and len(line) == 16 * 1024 * 1024
    assert splitter._pieces == [b""]


def test_our_own_server_reads_its_lines_with_the_same_splitter() -> None:
    assert stdio_transport.LineSplitter is LineSplitter
