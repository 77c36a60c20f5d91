"""Recipes: short JSON documents that describe long texts, so that a campaign can scale one dimension of an input.

"text"                                             itself
[recipe, …]                                        one after the other
{"times": n, "of": recipe, "join": ","}            n times the same
{"count": n, "of": recipe, "first": 0, "step": 1}  n times, with `<i>` as its number and `<j>` as the next one
{"nest": n, "open": recipe, "in": recipe, "close": recipe}
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from fuzz.mutation import NUMBERS, TEXTS, mutate_tokens

Recipe = Any
SIZES = ("times", "count", "nest")
NUMBER_CHARS = 20  # room for one number in the estimate of a size
MAX_STEP = 2**61
PUNCTUATION = ("[", "]", "{", "}", '"', ",", ":")
"""Words of every mutation of JSON."""


def many(number: int, of: Recipe, **how: Any) -> dict[str, Recipe]:
    """Return the recipe of numbered texts with commas between them."""
    return {"count": number, "of": of, "join": ",", **how}


def times(number: int, of: Recipe, join: str = "") -> dict[str, Recipe]:
    """Return the recipe of the same text many times."""
    return {"times": number, "of": of, "join": join} if join else {"times": number, "of": of}


def nest(number: int, start: Recipe, inner: Recipe, end: Recipe) -> dict[str, Recipe]:
    """Return the recipe of a text inside of many pairs of brackets."""
    return {"nest": number, "open": start, "in": inner, "close": end}


def expand(recipe: Recipe, max_bytes: int) -> str:
    """Return the text of a recipe, with its largest dimensions halved until it fits; raises ValueError for other JSON."""
    recipe = json.loads(json.dumps(recipe))
    while _size(recipe) > max_bytes:
        node, key = max(_sizes(recipe), key=lambda place: place[0][place[1]], default=(None, ""))
        if node is None or node[key] <= 1:
            raise ValueError("the recipe has more text than the entrance takes")
        node[key] //= 2
    return _text(recipe)


def _text(recipe: Recipe) -> str:
    match recipe:
        case str():
            return recipe
        case list():
            return "".join(map(_text, recipe))
        case {"times": int(number), "of": of}:
            return _text(recipe.get("join", "")).join([_text(of)] * number)
        case {"count": int(number), "of": of}:
            return _text(recipe.get("join", "")).join(_numbered(_text(of), number, recipe))
        case {"nest": int(number), "open": opened, "in": inner, "close": closed}:
            return _text(opened) * number + _text(inner) + _text(closed) * number
    raise ValueError(f"no recipe: {recipe!r:.80}")


def _numbered(text: str, number: int, recipe: dict[str, Any]) -> Iterator[str]:
    first, step = (int(recipe.get(name, default)) for name, default in (("first", 0), ("step", 1)))
    if abs(step) > MAX_STEP or abs(first) > 10**40:
        raise ValueError("the numbers of a recipe are too large")
    if "<" not in text:
        return itertools.repeat(text, max(number, 0))
    numbers = (first + index * step for index in range(number))
    head, found, tail = text.partition("<i>")
    if found and "<" not in tail and "<" not in head:  # the usual case, in a third of the time
        return (f"{head}{each}{tail}" for each in numbers)
    return (text.replace("<i>", str(each)).replace("<j>", str(each + step)) for each in numbers)


def _size(recipe: Recipe) -> int:
    """Return an upper bound of the bytes of the text."""
    match recipe:
        case str():
            return len(recipe.encode("utf-8", "surrogatepass"))
        case list():
            return sum(map(_size, recipe))
        case {"times": int(number), "of": of}:
            return max(number, 0) * (_size(of) + _size(recipe.get("join", "")))
        case {"count": int(number), "of": of}:
            held = _size(of) + _size(recipe.get("join", "")) + NUMBER_CHARS * json.dumps(of).count("<")
            return max(number, 0) * held
        case {"nest": int(number), "open": opened, "in": inner, "close": closed}:
            return max(number, 0) * (_size(opened) + _size(closed)) + _size(inner)
    raise ValueError(f"no recipe: {recipe!r:.80}")


def _sizes(tree: Any) -> Iterator[tuple[dict[str, Any], str]]:
    for node, key in _places([tree]):
        if isinstance(node, dict) and key in SIZES and type(node[key]) is int:
            yield node, key


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield tree, key
        yield from _places(tree[key])


def mutate_recipe(words: Sequence[str]) -> Callable[[bytes, bytes, Random], bytes]:
    """Return a mutation of documents that hold recipes: it mostly doubles a dimension, else changes a text or a part."""
    of_tokens = mutate_tokens([word.encode() for word in words])

    def mutate(data: bytes, other: bytes, chance: Random) -> bytes:
        document, donor = json.loads(data), json.loads(other)
        places = [*_places(document)]
        sizes = [(node, key) for node, key in places if key in SIZES and type(node[key]) is int]
        if sizes and chance.random() < 0.5:
            node, key = chance.choice(sizes)
            node[key] = max(1, int(node[key] * chance.choice((0.5, 2, 2, 4, 16))))
            return json.dumps(document).encode()
        node, key = chance.choice(places)
        match node[key]:
            case str() as text:
                node[key] = _changed_text(text, words, of_tokens, chance)
            case bool() | None:
                node[key] = chance.choice((True, False, None))
            case int():
                node[key] = chance.choice((0, 1, 7, 64, 1000, *NUMBERS[:8]))
            case _:
                from_, at = chance.choice([*_places(donor)])
                node[key] = from_[at]
        return json.dumps(document).encode()

    return mutate


def _changed_text(
    text: str, words: Sequence[str], of_tokens: Callable[[bytes, bytes, Random], bytes], chance: Random
) -> Any:
    match chance.randrange(6):
        case 0:
            return {"times": chance.choice((2, 50, 1000, 20_000)), "of": text or "x"}
        case 1:
            return {
                "nest": chance.choice((50, 1000, 20_000)),
                "open": chance.choice("([{<"),
                "in": text,
                "close": chance.choice(")]}>"),
            }
        case 2:
            return [text, {"times": chance.choice((2, 100, 10_000)), "of": chance.choice(words)}]
        case 3:
            return chance.choice((*words, *TEXTS)).encode("utf-8", "replace").decode()
        case 4:
            return [
                text,
                {
                    "count": chance.choice((2, 100, 10_000)),
                    "of": f"{chance.choice(words)}<i>",
                    "join": chance.choice((",", " ", "")),
                },
            ]
        case _:
            return of_tokens(text.encode("utf-8", "replace"), b"", chance).decode("utf-8", "replace")
