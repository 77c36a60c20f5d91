"""Two promises about every definition, checked on one that was compiled.

An argument that was accepted is in the request, or the call fails. A tool whose definition could not be read completely
says so. The definition is read here a second time, with as little code as possible, to compare.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from gloveport.policy.egress import Request
from gloveport.sources.definition_cache import DefinitionCache
from gloveport.sources.openapi.call.request import RequestBuilder
from gloveport.sources.openapi.operation import CompiledOperation, Operation
from gloveport.sources.openapi.reserved_headers import AUTHORIZATION, COMPUTED_HEADERS

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
INCOMPLETE = "Incomplete: "
MAX_DEPTH = 6
NOT_PATHS = frozenset({"query", "header", "cookie"})
_BOUNDARY = re.compile(rb"[0-9a-f]{32}")


def vanished_arguments(cache: DefinitionCache) -> Iterator[str]:
    """Yield the arguments whose value changes nothing in the request, though no error names them."""
    for head in cache.heads():
        made = msgspec.json.decode(cache.definition(head.address), type=CompiledOperation)
        schema = cache.schema(msgspec.json.encode(made.input_schema))
        given = Sampler(schema).value(schema)
        for path in _argument_paths(given, made.operation):
            if not _is_sent(made.operation, given, path):
                yield f"{head.address}: the argument {'.'.join(path)} is not in the request"


def _argument_paths(given: dict[str, Any], operation: Operation) -> list[tuple[str, ...]]:
    if not operation.grouped:
        return [(name,) for name in given]
    groups = [(place, name) for place in ("path", "query", "header", "cookie") for name in given.get(place, ())]
    return [*groups, *((name,) for name in ("body", "content_type") if name in given)]


def _is_sent(operation: Operation, given: dict[str, Any], path: tuple[str, ...]) -> bool:
    """Return True when leaving the argument out changes the request, or fails the call; one in the path is changed."""
    in_path = {one.argument for one in operation.parameters if one.place == "path"}
    changed = _with(given, path, "another" if path[-1] in in_path and path[0] not in NOT_PATHS else None)
    if path == ("content_type",):
        return True  # the type that is sampled may be the one that is chosen anyway
    try:
        return _wire(operation, given) != _wire(operation, changed)
    except ValueError:
        return True


def _wire(operation: Operation, args: dict[str, Any]) -> tuple[Any, ...]:
    request: Request = RequestBuilder(operation, "https://api.example.com", {}).build(args)
    fixed = tuple((name, _BOUNDARY.sub(b"", value.encode("utf-8", "replace"))) for name, value in request.headers)
    return request.url, fixed, _BOUNDARY.sub(b"", request.body or b"")


def _with(args: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    first, *rest = path
    if rest:
        return args | {first: _with(args[first], tuple(rest), value)}
    return {**args, first: value} if value is not None else {key: each for key, each in args.items() if key != first}


class Sampler:
    """Makes values that fit a schema by their types."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._defs = root.get("$defs", {})

    def value(self, schema: Any, depth: int = 0) -> Any:
        """Return a value; None when there is none to choose."""
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return "x"
        if "$ref" in schema:
            return self.value(self._defs.get(schema["$ref"].rpartition("/")[2], {}), depth + 1)
        if "const" in schema or schema.get("enum"):
            return next((one for one in schema.get("enum", [schema.get("const")]) if one not in (None, "")), None)
        for key in ("anyOf", "oneOf", "allOf"):
            if schema.get(key) and "properties" not in schema:
                found = [self.value(part, depth + 1) for part in schema[key]]
                return next((one for one in found if one is not None), None)
        return self._typed(schema, depth)

    def _typed(self, schema: dict[str, Any], depth: int) -> Any:
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        kind = next((one for one in kinds if one != "null"), "null") if isinstance(kinds, list) else kinds
        if kind == "object":
            properties = schema.get("properties", {})
            names = properties if depth < 2 else schema.get("required", ())
            made = {name: self.value(properties.get(name), depth + 1) for name in names}
            made = {name: one for name, one in made.items() if one is not None}
            return made if made or not depth else {"key": "x"}
        if kind == "array":
            item = self.value(schema.get("items"), depth + 1)
            return ["x" if item is None else item]
        return {"integer": 1, "number": 1.5, "boolean": True, "null": None}.get(kind, "x")


def silent_omissions(document: dict[str, Any], cache: DefinitionCache) -> Iterator[str]:
    """Yield what an OpenAPI or Swagger document declares and its tools neither have nor mention."""
    tools: defaultdict[tuple[str, str], list[tuple[str, Operation, str]]] = defaultdict(list)
    for head in cache.heads():
        made = msgspec.json.decode(cache.definition(head.address), type=CompiledOperation)
        tools[made.operation.method, made.operation.path].append((head.address, made.operation, head.description))
    warnings = cache.facts["warnings"]
    secrets = {slot["parameter"].lower() for slot in cache.facts["slots"] if slot.get("parameter")}
    for path, method, names, has_body in declared_operations(document):
        place = f"{method.upper()} {path}"
        found = tools[method.upper(), path.partition("#")[0]]
        if not found and len(warnings) < 50 and not any(place in warning for warning in warnings):
            yield f"{place} has no tool and no warning"
        if not found or any(INCOMPLETE in description for _, _, description in found):
            continue
        known = {one.name.lower() for _, operation, _ in found for one in operation.parameters}
        for name in names:
            if name.lower() not in known | secrets | COMPUTED_HEADERS | {AUTHORIZATION}:
                yield f"{found[0][0]}: the parameter {name!a} is missing, and nothing says so"
        if has_body and all(operation.body is None for _, operation, _ in found):
            yield f"{found[0][0]}: its body is missing, and nothing says so"


def declared_operations(document: dict[str, Any]) -> Iterator[tuple[str, str, list[str], bool]]:
    """Yield path, method, the names of the parameters, and whether there is a body that says something."""
    for key, given in document.get("paths", {}).items():
        item = _follow(document, given)
        if key.startswith("x-") or not isinstance(item, dict):
            continue
        for method in METHODS:
            node = _follow(document, item.get(method))
            if not isinstance(node, dict):
                continue
            lists = [one for one in (item.get("parameters"), node.get("parameters")) if isinstance(one, list)]
            parameters = [one for some in lists for each in some if isinstance(one := _follow(document, each), dict)]
            names = [one["name"] for one in parameters if one.get("in") in ("path", "query", "header", "cookie")]
            body = _follow(document, node.get("requestBody")) if "openapi" in document else None
            has_body = isinstance(body, dict) and body.get("required") is True
            has_body = has_body or ("swagger" in document and any(one.get("in") == "body" for one in parameters))
            yield key if key.startswith("/") else f"/{key}", method, names, has_body


def _follow(document: Any, node: Any) -> Any:
    for _ in range(10):
        if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
            return node
        found: Any = document
        for step in node["$ref"].removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        node = found
    return node
