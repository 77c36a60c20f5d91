# Makes values that nobody would, and tries to send each: it crosses, or is refused with its path, and nothing else happens.
import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import random
import types
import uuid

chance = random.Random(input["seed"])


def own(*_):
    raise RuntimeError("own")


@dataclasses.dataclass
class Point:
    x: object
    y: object = None


class Colour(enum.Enum):
    RED = "red"
    DEEP = (1, [2])


class Text(str):
    __str__ = __repr__ = __hash__ = own


class Number(int):
    __int__ = __index__ = own


class Odd:
    __slots__ = ("a",)
    __repr__ = own


class Broken(dict):
    items = keys = __iter__ = own


class Failure(Exception):
    __str__ = own


WORDS = ["", "$", "$$", "v", "__proto__", "__class__", "a.b", "\ud800", "é", "\0"]
NUMBERS = [0, -0.0, float("nan"), float("inf"), 2**53, -(2**53) - 1, 1e300, 5e-324, 10**4000, 10**3999, True]
PLAIN = [
    lambda: None,
    lambda: chance.choice(NUMBERS),
    lambda: chance.choice(WORDS),
    lambda: datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=chance.randint(-23, 23)))),
    lambda: datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
    lambda: datetime.date(2020, 1, 2),
    lambda: datetime.timedelta(days=chance.randint(-(10**8), 10**8)),
    lambda: chance.randbytes(chance.randint(0, 9)),
    lambda: memoryview(b"abcdef")[:: chance.choice([1, -1, 2])],
    lambda: array.array("d", [1.5]),
    lambda: bytearray(3),
    lambda: decimal.Decimal("sNaN"),
    lambda: fractions.Fraction(1, 3),
    lambda: uuid.UUID(int=1),
    lambda: pathlib.PurePosixPath("/a"),
    lambda: Colour.DEEP,
    lambda: Text("text"),
    lambda: Number(5),
    lambda: Odd(),
    lambda: Broken(a=1),
    lambda: Failure("f"),
    lambda: own,
    lambda: Point,
    lambda: types,
    lambda: iter([1]),
    lambda: (x for x in ()),
    lambda: tools,
    lambda: range(chance.randint(0, 9)),
    lambda: complex(1, 2),
    lambda: ...,
    lambda: NotImplemented,
]


def around():
    held = [1]
    held.append(held)
    return held


def deep():
    held = []
    for _ in range(chance.randint(50, 250)):
        held = chance.choice([[held], {"deep": held}, (held,)])
    return held


def caused(depth):
    error = ValueError(make(depth - 1))
    error.extra = make(depth - 1)
    error.__cause__ = chance.choice([error, KeyError("k"), None])
    return error


def keyed(depth):
    key = make(depth - 1)
    try:
        return {key: make(depth - 1), 1: 2}
    except (TypeError, RuntimeError, ValueError):
        return [key]


NESTED = [
    lambda depth: [make(depth - 1) for _ in range(chance.randint(0, 4))],
    lambda depth: (make(depth - 1), make(depth - 1)),
    lambda depth: {chance.choice(WORDS): make(depth - 1), "b": make(depth - 1)},
    keyed,
    lambda depth: frozenset([1, "a", None, 2.5, b"b"]),
    lambda depth: collections.deque([make(depth - 1)]),
    lambda depth: collections.OrderedDict(a=make(depth - 1)),
    lambda depth: collections.namedtuple("Pair", "a b")(make(depth - 1), 1),
    lambda depth: types.SimpleNamespace(a=make(depth - 1)),
    lambda depth: types.MappingProxyType({"a": make(depth - 1)}),
    lambda depth: Point(make(depth - 1)),
    lambda depth: {"a": make(depth - 1)}.values(),
    lambda depth: {"a": make(depth - 1)}.keys(),
    lambda depth: around(),
    lambda depth: deep(),
    caused,
]


def make(depth):
    return chance.choice(NESTED)(depth) if depth > 0 and chance.random() < 0.66 else chance.choice(PLAIN)()


refused = []
for _ in range(input["count"]):
    try:
        await tools.take(value=make(4))
    except Exception as error:
        refused.append(str(error))
return refused
