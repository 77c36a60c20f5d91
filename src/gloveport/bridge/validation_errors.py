"""Explain invalid arguments in one message: where, what is wrong, what may have been meant, and what the tool takes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema_rs

from gloveport.bridge.validation_cost import is_expensive_to_explain
from gloveport.catalog import typescript_stubs
from gloveport.suggestions import question, similar
from gloveport.types import Tool

MAX_PROBLEMS = 5
MAX_PARAMETERS = 30
MAX_EXPLAINED_ITEMS = 5
LATER_ITEMS = (
    f", though the first {MAX_EXPLAINED_ITEMS} items of each list are valid: check the others, and how many are allowed"
)
MAX_EXPLAINED_KEYS = 100
MAX_EXPLAINED_CHARS = 10_000
MAX_PROBLEM_CHARS = 300
MAX_MESSAGE_CHARS = 4000


def describe_errors(validator: jsonschema_rs.Validator, args: Any, tool: Tool) -> str:
    """Return up to five problems with the arguments, and the parameters that the tool takes."""
    try:
        errors = _errors(validator, args, tool)
    except ValueError as error:
        return f"{error}; {_parameters(tool)}"[:MAX_MESSAGE_CHARS]
    generic = f"they do not fit the schema{'' if errors is None else LATER_ITEMS}"
    first = sorted(errors or (), key=lambda error: error.kind.name != "additionalProperties")
    problems = "; ".join(dict.fromkeys(_problem(error, tool) for error in first))
    return f"{problems or generic}; {_parameters(tool)}"[:MAX_MESSAGE_CHARS]


def _errors(validator: jsonschema_rs.Validator, args: Any, tool: Tool) -> list[jsonschema_rs.ValidationError] | None:
    """Return the first errors, or None when looking for them costs too much.

    The validator finds all errors, each with a copy of the invalid value. So it sees only the first items of each list
    of large arguments, and nothing at all of arguments that are still too expensive then.
    """
    if not is_expensive_to_explain(tool.input_schema, args):
        return list(itertools.islice(validator.iter_errors(args), MAX_PROBLEMS))
    args = _first_items(args)
    if is_expensive_to_explain(tool.input_schema, args):
        return None
    errors = (error for error in validator.iter_errors(args) if not _is_artefact(error))
    return list(itertools.islice(errors, MAX_PROBLEMS))


def _is_artefact(error: jsonschema_rs.ValidationError) -> bool:
    """Return True for an error that may be there only because the list was cut."""
    shown, kind = error.instance, error.kind.name
    if isinstance(shown, dict):
        return kind in ("required", "minProperties", "dependentRequired") and len(shown) >= MAX_EXPLAINED_KEYS
    if isinstance(shown, str):
        return len(shown) >= MAX_EXPLAINED_CHARS
    return kind in ("minItems", "contains") and isinstance(shown, list) and len(shown) >= MAX_EXPLAINED_ITEMS


def _first_items(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _first_items(item) for key, item in itertools.islice(value.items(), MAX_EXPLAINED_KEYS)}
    if isinstance(value, str):
        return value[:MAX_EXPLAINED_CHARS]
    return [_first_items(item) for item in value[:MAX_EXPLAINED_ITEMS]] if isinstance(value, list) else value


def _problem(error: jsonschema_rs.ValidationError, tool: Tool) -> str:
    place = _path(error.instance_path)
    known = error.kind.as_dict()
    if error.kind.name == "required":
        return f"`{_join(place, known['property'])}` is missing"
    if error.kind.name in ("additionalProperties", "unevaluatedProperties"):
        names = _properties(tool.input_schema, error.instance_path)
        return "; ".join(_unknown_property(place, name, names) for name in known["unexpected"][:MAX_PROBLEMS])
    if error.kind.name == "type":
        return f"`{place or 'arguments'}` must be {_with_articles(known['types'])}, not {_type_of(error.instance)}"
    if error.kind.name in ("anyOf", "oneOf") and known.get("context"):
        return _alternatives(place, known["context"], tool)
    message = error.message if len(error.message) <= MAX_PROBLEM_CHARS else f"…{error.message[-MAX_PROBLEM_CHARS:]}"
    return f"`{place or 'arguments'}`: {message}"


def _alternatives(place: str, branches: Sequence[Sequence[jsonschema_rs.ValidationError]], tool: Tool) -> str:
    """Return the problems of the most likely alternative: of the right type, with the fewest problems."""
    here = [errors for errors in branches if errors]
    wrong = [errors[0] for errors in here if errors[0].kind.name == "type" and _path(errors[0].instance_path) == place]
    likely = [errors for errors in here if errors[0] not in wrong]
    if likely:
        return "; ".join(_problem(error, tool) for error in min(likely, key=len)[:MAX_PROBLEMS])
    kinds = dict.fromkeys(kind for error in wrong for kind in error.kind.as_dict()["types"])
    if not kinds:
        return f"`{place}` matches none of the allowed alternatives"
    return f"`{place}` must be {_with_articles(list(kinds))}, not {_type_of(wrong[0].instance)}"


def _unknown_property(place: str, name: str, names: Sequence[str]) -> str:
    name = name if len(name) <= 60 else f"{name[:60]}…"
    suggested = similar(name, names[:200], limit=1)
    guess = f" ({question([_join(place, suggested[0])])})" if suggested else ""
    return f"there is no `{_join(place, name)}`{guess}"


def _properties(schema: Any, path: Sequence[str | int]) -> list[str]:
    """Return the property names that the schema has at a place in the arguments, as far as they are easy to find."""
    root = schema
    for step in [*path, None]:
        while isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
            schema = root.get("$defs", {}).get(schema["$ref"].rpartition("/")[2])
        if not isinstance(schema, Mapping) or step is None:
            break
        properties = schema.get("properties")
        if isinstance(step, int):
            schema = schema.get("items")
        else:
            schema = properties.get(step) if isinstance(properties, Mapping) else None
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return list(found) if isinstance(found, Mapping) else []


def _parameters(tool: Tool) -> str:
    if not tool.parameters:
        return "it takes no arguments"
    rows = itertools.islice(typescript_stubs.parameters(tool), MAX_PARAMETERS)
    listed = [f"{row['name']}{'' if row['required'] else '?'}: {_shorten(row['type'])}" for row in rows]
    more = len(tool.parameters) - len(listed)
    return f"it takes {', '.join(listed)}" + (f" and {more} more" if more > 0 else "")


def _shorten(kind: str) -> str:
    kind = " ".join(kind.split())
    return kind if len(kind) <= 60 else "{…}" if kind.startswith("{") else f"{kind[:59]}…"


def _path(steps: Sequence[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step[:60]}" for step in steps).removeprefix(".")


def _join(place: str, name: Any) -> str:
    return f"{place}.{name}" if place else str(name)


def _with_articles(kinds: Sequence[str]) -> str:
    named = [f"an {kind}" if kind[0] in "aeiou" else kind if kind == "null" else f"a {kind}" for kind in kinds]
    return " or ".join(named)


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "a boolean"), (str, "a string"), ((int, float), "a number"), (list, "an array")):
        if isinstance(value, kind):
            return name
    return "an object"
