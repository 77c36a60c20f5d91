"""What schemathesis must know to make good requests: the formats of our API, and which tokens are its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import schemathesis
from hypothesis import strategies as st

from gloveport.errors import WorkspaceError
from gloveport.sandbox.workspace import check_name
from gloveport.tool_names import RESERVED_SOURCE_NAMES, ROOT_SOURCE, problem_with
from interop.schemathesis import TESTER


def _is_source_name(name: str) -> bool:
    return problem_with(name) is None and name not in RESERVED_SOURCE_NAMES | {ROOT_SOURCE}


def _is_file_name(name: str) -> bool:
    try:
        check_name(name)
    except WorkspaceError:
        return False
    return "/" not in name


names = st.from_regex(r"[A-Za-z_]\w{0,63}", fullmatch=True).filter(_is_source_name)
values = st.one_of(st.integers(-1000, 1000).map(str), st.sampled_from(["true", "null", '"a text"']))
comparisons = st.builds(
    "args.{} {} {}".format, st.sampled_from(["amount", "to"]), st.sampled_from(["==", "<", ">="]), values
)
paths = st.lists(st.text(min_size=1, max_size=20).filter(_is_file_name), min_size=1, max_size=4).map("/".join)
packages = st.from_regex(r"(npm:(@[a-z0-9]{1,9}/)?|pypi:)[a-z0-9]([a-z0-9._-]{0,30}[a-z0-9])?", fullmatch=True)
schemathesis.openapi.format("package", packages)
schemathesis.openapi.format("workspace-path", paths)
schemathesis.openapi.format("source-name", names)
schemathesis.openapi.format("condition", st.lists(comparisons, min_size=1, max_size=3).map(" and ".join))


@schemathesis.hook
def filter_path_parameters(context: Any, path_parameters: Mapping[str, Any] | None) -> bool:
    """Leave the token of the requests alone: all further ones would be refused, and nothing would be tested."""
    return not str((path_parameters or {}).get("name", "")).startswith(TESTER)
