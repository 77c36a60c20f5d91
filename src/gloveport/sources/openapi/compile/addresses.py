"""Addresses for operations: from the operationId where a person wrote one, else from the path; legal, unique, stable.

repos/create-in-org                    → repos.create_in_org
VirtualMachines_Get                    → VirtualMachines.Get
listPets, tagged pets                  → pets.listPets
GetCustomersCustomer (made from path)  → customers.get
no id, POST /v1/charges/{id}/capture   → charges.capture
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import NamedTuple

from gloveport.tool_names import problem_with

MAX_STEP_CHARS = 80
MAX_STEPS = 8

_VERSION = re.compile(r"v\d+([._]?\d+)*((alpha|beta|rc)\d*)?$|api$|rest$|\d+([._-]\d+)*$", re.IGNORECASE)
_AZURE = re.compile(r"[A-Z][A-Za-z0-9]*_[A-Z][A-Za-z0-9]*$")
_TEMPLATE = re.compile(r"\{[^{}]*\}")
_VERBS = {"post": "create", "put": "replace", "patch": "update", "delete": "delete"}


class OperationIdentity(NamedTuple):
    """What an operation is named from; `lists` says whether it answers with a list, None when there is no telling."""

    method: str
    path: str
    id: str | None
    tag: str | None
    lists: bool | None = None


def addresses(operations: Iterable[OperationIdentity]) -> dict[tuple[str, str], str]:
    """The address of each operation, by method and path."""
    # Of those that would share an address, the one with the shortest path keeps it, whatever the document's order.
    order = sorted(operations, key=lambda one: (len(one.path), one.path, one.method))
    steps = {one: _steps(one) for one in order}
    # A tool is never a namespace too: `tools.x.list.pages` must mean the pages of `tools.x.list`.
    taken = {".".join(some[:length]) for some in steps.values() for length in range(1, len(some))}
    found: dict[tuple[str, str], str] = {}
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))
    for one in order:
        address = next(candidate for candidate in _candidates(one, steps[one], numbers) if candidate not in taken)
        found[one.method, one.path] = address
        taken.add(address)
    return found


def _candidates(one: OperationIdentity, steps: list[str], numbers: Mapping[str, Iterator[int]]) -> Iterator[str]:
    """Addresses for an operation, the best first; all in the same namespace, and without end.

    `numbers` go on from where another stopped: what was taken then still is, and a document may have thousands of them.
    """
    plain = ".".join(steps)
    yield plain
    yield f"{plain}_{one.method}"
    wordy = ".".join([*steps[:-1], _legal(f"{one.method} {one.path}")])
    yield wordy
    for number in numbers[wordy]:
        yield f"{wordy}_{number}"


def _steps(one: OperationIdentity) -> list[str]:
    if one.id and not is_generated_id(one):
        steps = [part for part in re.split(r"[/.]", one.id) if re.search(r"[A-Za-z0-9]", part)]
        if len(steps) == 1 and _AZURE.match(one.id):
            steps = one.id.split("_")
        if len(steps) == 1:
            steps = _grouped(steps[0], one)
        if steps:
            return [_legal(step) for step in (steps if len(steps) <= MAX_STEPS else [*steps[: MAX_STEPS - 1], steps[-1]])]
    return _path_steps(one)


def _grouped(name: str, one: OperationIdentity) -> list[str]:
    group = one.tag or next(iter(_static(one.path)), None)
    if group is None:
        return [name]
    rest = re.sub(rf"^{re.escape(group)}[^A-Za-z0-9]+(?=\w)", "", name, flags=re.IGNORECASE)
    return [group, rest] if _letters(group) != _letters(name) else [name]


def _static(path: str) -> list[str]:
    """The fixed segments of a path, without a leading version or `api`."""
    plain = re.split(r"[?#]", path)[0]
    segments = [_TEMPLATE.sub("", segment) for segment in re.split(r"[/:]", plain)]
    words = [segment for segment in segments if re.search(r"[A-Za-z0-9]", segment)]
    while len(words) > 1 and _VERSION.match(words[0]):
        words.pop(0)
    return words


def _path_steps(one: OperationIdentity) -> list[str]:
    groups = _static(one.path)
    extra = re.split(r"[?#]", one.path, maxsplit=1)[1:]
    if extra and "=" in extra[0]:  # `/?Action=CreateUser`, `/#X-Amz-Target=Service.CreateUser`
        name = re.split(r"[=.&]", extra[0].partition("&")[0])[-1]
        return [_legal(step) for step in (*groups[: MAX_STEPS - 1], name or one.method)]
    ends_open = bool(_TEMPLATE.search(one.path.rstrip("/").rpartition("/")[2]))
    last = groups[-1] if groups else ""
    if not ends_open and one.method == "post" and len(groups) > 1 and not _plural(last) and "{" in one.path:
        return [_legal(step) for step in groups[-MAX_STEPS:]]
    if one.method in ("get", "head"):
        verb = "list" if not ends_open and (_plural(last) if one.lists is None else one.lists) else "get"
        verb = "check" if one.method == "head" else verb
    elif one.method == "post" and ends_open:
        verb = "update"
    else:
        verb = _VERBS.get(one.method, one.method)
    return [*(_legal(step) for step in groups[-MAX_STEPS + 1 :]), verb]


def _plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us", "is"))


def is_generated_id(one: OperationIdentity) -> bool:
    """True for an operationId that says no more than method and path do: GetAccountsAccount, get_v1_accounts__id_."""
    said = _letters(one.id or "")
    if not said.startswith(one.method) and not said.endswith(one.method):
        return False
    whole = _letters(one.path)
    spoken = _letters("/".join(part for part in one.path.split("/") if not _VERSION.match(part)))
    fixed = _letters("".join(_static(one.path)))
    return said in {f"{one.method}{path}" for path in (whole, spoken, fixed)} | {
        f"{path}{one.method}" for path in (whole, spoken, fixed)
    }


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _legal(text: str) -> str:
    """The text as one step of an address: itself where it is legal, else its words joined with `_`."""
    text = unicodedata.normalize("NFKC", text)[: MAX_STEP_CHARS * 4]
    if problem_with(text) is not None or not text.isascii():
        words = re.findall(r"[A-Za-z0-9_]+", unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode())
        joined = "_".join(words)
        text = joined.lower() if re.search(r"\s", text) else joined
        text = re.sub(r"__+", "_", text).strip("_") or "operation"
    text = text[:MAX_STEP_CHARS].rstrip("_") or "operation"
    if text[0].isdigit():
        text = f"_{text}"
    return f"{text}_" if keyword.iskeyword(text) or problem_with(text) is not None else text


def slot_name(text: str, taken: Mapping[str, object]) -> str:
    """A security scheme's name as the name of a slot, unlike those taken."""
    name = plain = _legal(text)
    number = 2
    while name in taken:
        name, number = f"{plain}_{number}", number + 1
    return name
