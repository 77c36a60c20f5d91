"""`Outcome._repr_html_`: a table and a tree for notebooks, within 50 kB, and inert whatever a program returned."""

from html.parser import HTMLParser
from typing import Any

from gloveport.types import CallRecord, Failure, LogLine, Outcome, Usage

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>'\"&</td></table></div>\u202e\x1b[2J$\\href{javascript:alert(1)}{x}$"
ELEMENTS = {"div", "b", "pre", "table", "tr", "td", "th", "details", "summary", "ul", "li", "code", "small", "br"}


class Reader(HTMLParser):
    """Notes the elements, their attributes and the text; fails when they are not nested properly."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(outcome: Outcome) -> Reader:
    shown = outcome._repr_html_()
    assert len(shown.encode()) <= 50_000
    reader = Reader()
    reader.feed(shown)
    reader.close()
    assert reader.open == []
    assert reader.seen <= ELEMENTS
    assert reader.attributes <= {"style", "class", "open", "border", "cellpadding"}
    return reader


def call(number: int, tool: str = "local.add", **more: Any) -> CallRecord:
    return CallRecord(number, tool, {"a": number}, "ok", 0.0, 0.25, **more)


def test_a_list_of_objects_is_a_table_and_the_calls_are_a_tree_by_step() -> None:
    rows = [{"city": "Oslo", "celsius": -4}, {"city": "Lisbon", "celsius": 19, "sea": True}]
    calls = (call(1), call(2, step="load/users"), call(3, step="load/orders"), call(4, step="save"), call(5))
    outcome = Outcome("r", "completed", rows, calls=calls, logs=(LogLine("warn", "late"),), usage=Usage(0.5))
    shown = outcome._repr_html_()
    assert shown.count("<tr>") == 3
    assert shown.count("<th>") == 3
    assert shown.count("<li><b>load</b>") == 1
    assert "completed in 0.50 s with 5 calls" in read(outcome).text
    assert "warn: late" in read(outcome).text


def test_what_programs_and_tools_write_is_inert() -> None:
    failure = Failure("program-failed", "Error", HOSTILE, hint=HOSTILE)
    calls = (CallRecord(1, HOSTILE, HOSTILE, "failed", 0.0, 0.1, error=HOSTILE, step=f"{HOSTILE}/{HOSTILE}"),)
    rest: Any = {"logs": (LogLine(HOSTILE, HOSTILE),), "calls": calls, "warnings": (HOSTILE,), "waiting": (HOSTILE,)}
    for value in (HOSTILE, {HOSTILE: HOSTILE}, [{HOSTILE: [HOSTILE]}]):
        text = read(Outcome("r", "completed", value, emitted=(value,), **rest)).text
        assert "<script>alert(1)</script>" in text
        assert "\u202e" not in text
        assert "\x1b" not in text
    assert "mathjax_ignore" in Outcome("r", "failed", error=failure)._repr_html_()
    read(Outcome("r", "failed", error=failure, **rest))


def test_it_stays_small_whatever_the_size_of_the_outcome() -> None:
    wide = "\U0001f9e4<&" * 1000
    calls = tuple(call(number, wide, error=wide, step="/".join([wide] * 40 + [str(number)])) for number in range(500))
    logs = tuple(LogLine("log", wide) for _ in range(5000))
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    values = ([{f"{column}{wide}": wide for column in range(50)}] * 5000, {wide + str(i): wide for i in range(500)}, wide)
    for value in (*values, deep, 10**5000, b"x" * 10**6, [], {}, None):
        outcome = Outcome("r", "completed", value, calls=calls, logs=logs, emitted=(value, value), warnings=(wide,) * 300)
        assert "more lines" in read(outcome).text
    shown = read(Outcome("r", "completed", [{"n": n} for n in range(250)], calls=tuple(map(call, range(250)))))
    assert "150 more rows" in shown.text
    assert "150 more calls" in shown.text
