"""Every argument is in the request or fails the call, and a tool that lacks a part says so, whatever the definition."""

import json
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gloveport.errors import SourceError
from tests.sources.openapi.compiled import compile_here, openapi
from tests.sources.openapi.promises import INCOMPLETE, silent_omissions, vanished_arguments

NAMES = st.sampled_from(["id", "q", "lat", "body", "content_type", "Host", "Authorization", "Cookie", "X-A", "path"])
SCHEMAS: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"q": {"type": "string"}, "b": {"type": "integer"}}},
        {"type": "object"},
        {"$ref": "#/components/schemas/gone"},
    ]
)
PLAIN = st.fixed_dictionaries(
    {"name": NAMES, "in": st.sampled_from(["path", "query", "header", "cookie", "form"]), "schema": SCHEMAS},
    optional={"style": st.sampled_from(["deepObject", "label", "pipeDelimited"]), "explode": st.booleans()},
)
PARAMETERS = st.lists(
    st.one_of(PLAIN, st.sampled_from([{"$ref": "#/x/q"}, {"$ref": "#/x/gone"}, {"$ref": "#/x/loop"}])), max_size=4
)
MEDIA_TYPES = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data", "text/csv", "a/b"]
BODIES = st.fixed_dictionaries(
    {"content": st.dictionaries(st.sampled_from(MEDIA_TYPES), st.fixed_dictionaries({"schema": SCHEMAS}), max_size=3)},
    optional={"required": st.booleans()},
)
OPERATIONS = st.fixed_dictionaries({"parameters": PARAMETERS}, optional={"requestBody": BODIES})
PATHS = st.sampled_from(["/a", "/a/{id}", "/a?lat={lat}", "/a/{q}?{id}=1&at=({lat},{id})", "/a{.id}", "/a#{q}", "a/{path}"])
SHARED = {
    "q": {"name": "shared", "in": "query", "required": True, "schema": {"type": "string"}},
    "loop": {"$ref": "#/x/loop"},
}


@given(path=PATHS, shared=PARAMETERS, node=OPERATIONS, referred=st.booleans())
def test_no_argument_vanishes_and_no_part_is_missing_silently(
    path: str, shared: list[Any], node: dict[str, Any], referred: bool
) -> None:
    held = {"$ref": "#/x/operation"} if referred else node
    document = openapi({path: {"parameters": shared, "post": held}}, x=SHARED | {"operation": node})
    with tempfile.TemporaryDirectory() as folder:
        try:
            cache = compile_here(json.dumps(document).encode(), "https://example.com/", Path(folder))
        except SourceError as error:
            assert "operations" in str(error)
            return
        with closing(cache):
            assert list(vanished_arguments(cache)) == []
            assert list(silent_omissions(document, cache)) == []
            (head,) = cache.heads()
            gone = [one for one in (*shared, *node["parameters"]) if one.get("$ref", "#/x/q") != "#/x/q"]
            assert not gone or INCOMPLETE in head.description
