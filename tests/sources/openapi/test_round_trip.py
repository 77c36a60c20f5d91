"""Calls of a definition with every style and kind of body, decoded by a server that knows the definition.

The server decodes each request by OpenAPI's rules, and must find exactly the arguments of the call.
"""

import email
import email.policy
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs, unquote

import orjson
import pytest
from conformance.arguments import Maker
from conformance.styles import document

from gloveport.bridge.arguments import Contract
from gloveport.config import SourceConfig
from gloveport.errors import ToolError
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress
from gloveport.sources.context import SourceContext
from gloveport.sources.openapi.opening import open_openapi
from tests.sources.in_process_tasks import InProcessTasks
from tests.sources.openapi.support import Seen, Server

pytestmark = pytest.mark.integration

Json = dict[str, Any]
ROUNDS = 8


def typed(schema: Json, raw: Any) -> Any:
    """Convert a decoded string, or a list or object of strings, to the types of its schema."""
    if schema["type"] == "array":
        return [typed(schema["items"], item) for item in raw]
    if schema["type"] == "object":
        return {name: typed(schema["properties"][name], item) for name, item in raw.items()}
    return int(raw) if schema["type"] == "integer" else raw == "true" if schema["type"] == "boolean" else raw


def split(schema: Json, text: str, separator: str, *, explode: bool) -> Any:
    """Return the list or object that a text encodes; the text itself for any other schema."""
    pieces = text.split(separator)
    if schema["type"] == "array":
        return [unquote(piece) for piece in pieces]
    if schema["type"] != "object":
        return unquote(text)
    pairs = [piece.split("=") for piece in pieces] if explode else zip(pieces[::2], pieces[1::2], strict=True)
    return {unquote(name): unquote(value) for name, value in pairs}


def read_path(parameter: Json, text: str) -> Any:
    schema, style, explode = parameter["schema"], parameter.get("style", "simple"), parameter.get("explode", False)
    if style == "label":
        assert text[0] == "."
        text = text[1:]
    elif style == "matrix":
        text = (
            text.removeprefix(";")
            if explode and schema["type"] == "object"
            else text.removeprefix(f";{parameter['name']}=")
        )
        if explode and schema["type"] == "array":
            text = text.replace(f"{parameter['name']}=", "")
    separator = {"simple": ",", "label": ".", "matrix": ";"}[style] if explode else ","
    return split(schema, text, separator, explode=explode)


def read_query(parameter: Json, query: str) -> Any:
    if "content" in parameter:
        return orjson.loads(parse_qs(query)[parameter["name"]][0])
    name, schema, explode = parameter["name"], parameter["schema"], parameter.get("explode", True)
    fields = parse_qs(query)
    if parameter.get("style") == "deepObject":
        return {
            key.removeprefix(f"{name}[").removesuffix("]"): value[0]
            for key, value in fields.items()
            if key.startswith(f"{name}[")
        }
    if not explode:
        (raw,) = [pair.partition("=")[2] for pair in query.split("&") if pair.startswith(f"{name}=")]
        separator = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}.get(parameter.get("style", "form"), ",")
        return split(schema, raw, separator, explode=False)
    if schema["type"] == "object":
        return {key: fields[key][0] for key in schema["properties"]}
    return fields[name] if schema["type"] == "array" else fields[name][0]


def read_parameter(parameter: Json, template: str, seen: Seen) -> Any:
    name, place = parameter["name"], parameter["in"]
    schema = parameter.get("schema", {"type": "any"})
    if place == "path":
        steps = dict(zip(template.split("/"), seen.path.split("/"), strict=True))
        return typed(schema, read_path(parameter, steps[f"{{{name}}}"]))
    if place == "query":
        raw = read_query(parameter, seen.query)
        return raw if "content" in parameter else typed(schema, raw)
    if place == "header":
        return typed(schema, split(schema, seen.header(name) or "", ",", explode=parameter.get("explode", False)))
    return typed(schema, dict(pair.split("=") for pair in (seen.header("cookie") or "").split("; "))[name])


def read_body(content: Json, seen: Seen) -> Any:
    media_type = (seen.header("content-type") or "").partition(";")[0]
    schema = content[media_type]["schema"]
    if media_type.endswith("json"):
        return orjson.loads(seen.body)
    if media_type == "application/x-www-form-urlencoded":
        fields = parse_qs(seen.body.decode(), strict_parsing=True)
        out = {
            name: value if schema["properties"][name]["type"] == "array" else value[0]
            for name, value in fields.items()
            if "[" not in name
        }
        deep = {name: value[0] for name, value in fields.items() if "[" in name}
        for name, value in deep.items():
            out.setdefault(name.partition("[")[0], {})[name.partition("[")[2].removesuffix("]")] = value
        return typed(schema, out)
    if media_type == "multipart/form-data":
        return read_parts(schema, seen)
    return seen.body if media_type == "application/octet-stream" else seen.body.decode()


def read_parts(schema: Json, seen: Seen) -> Json:
    whole = f"Content-Type: {seen.header('content-type')}\r\n\r\n".encode() + seen.body
    out: Json = {}
    for part in email.message_from_bytes(whole, policy=email.policy.HTTP).iter_parts():  # pyright: ignore[reportAttributeAccessIssue]
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        if name == "file":
            assert part.get_filename() and part.get_content_type().startswith("image/")
        out[name] = (
            data
            if name == "file"
            else typed(schema["properties"][name], orjson.loads(data) if name == "where" else data.decode())
        )
    return out


def given_body(args: Json, parameters: list[Json]) -> Any:
    if "body" in args:
        return args["body"]
    names = {parameter["name"] for parameter in parameters} | {"content_type"}
    body = {name: value for name, value in args.items() if name not in names}
    if isinstance(body.get("file"), dict):
        body["file"] = body["file"]["data"]
    return body


async def test_a_server_that_knows_the_definition_reads_what_the_call_was_given(tmp_path: Path) -> None:
    definition = document()
    (tmp_path / "styles.json").write_bytes(orjson.dumps(definition))
    secrets = dict.fromkeys([f"GLOVEPORT_IT_{slot}" for slot in ("KEY", "LOGIN", "TOKEN")], "user:secret")
    outside = SourceContext(Egress(), EnvironmentCredentials({}, secrets), tmp_path / "cache", InProcessTasks())
    random, calls = Random(4), 0
    nodes = {
        node["operationId"]: (template, node) for template, item in definition["paths"].items() for node in item.values()
    }
    async with Server() as server:
        config = SourceConfig("it", "openapi", str(tmp_path / "styles.json"), base_url=server.url, allow_private=True)
        source = await open_openapi(config, outside)
        for tool in source.tools():
            operation = source._stored(tool.address.partition(".")[2]).operation
            (found,) = [(path, node) for path, node in nodes.values() if path == operation.path]
            template, node = found
            maker, contract = Maker(tool.input_schema, random), Contract(tool, source, tool.address)
            for _ in range(ROUNDS):
                args = maker.well_formed()
                await source.call(tool, contract.accept([args]))
                calls += 1
                for parameter in node.get("parameters", ()):
                    group = args[parameter["in"]] if operation.grouped else args
                    assert read_parameter(parameter, template, server.last) == group[parameter["name"]], tool.address
                if "requestBody" in node:
                    assert read_body(node["requestBody"]["content"], server.last) == given_body(
                        args, node.get("parameters", [])
                    )
                sent = len(server.seen)
                for wrong in maker.malformed(args):
                    if maker.refuses(wrong):
                        with pytest.raises(ToolError):
                            contract.accept([wrong])
                assert len(server.seen) == sent
        await source.close()
        await outside.egress.close()
    assert calls >= 200
