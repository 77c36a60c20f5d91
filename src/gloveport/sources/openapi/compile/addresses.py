"""Assign an address to each operation: from its operationId if a person wrote it, else from its path.

Addresses are legal, unique, and independent of the order of the document.

repos/create-in-org                    → repos.create_in_org
VirtualMachines_Get                    → VirtualMachines.Get
listPets, tagged pets                  → pets.listPets
GetCustomersCustomer (generated)       → customers.get
read_item_items__id__get (FastAPI's)   → items.read_item
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
MAX_SOURCE_CHARS = 500
"""Of a path, an operationId or a tag, no more is read: what follows can't change much in a name of a few steps."""

# Every character can match in one way only, so the time is linear.
_VERSION = re.compile(r"v\d++(?:[._]\d++)*+(?:(?:alpha|beta|rc)\d*+)?$|api$|rest$|\d++(?:[._-]\d++)*+$", re.IGNORECASE)
_AZURE = re.compile(r"[A-Z][A-Za-z0-9]*_[A-Z][A-Za-z0-9]*$")
_TEMPLATE = re.compile(r"\{[^{}]*\}")
_VERBS = {"post": "create", "put": "replace", "patch": "update", "delete": "delete"}


class OperationIdentity(NamedTuple):
    """What an operation is named from. `lists` states whether it returns a list; None when that is unknown."""

    method: str
    path: str
    id: str | None
    tag: str | None
    lists: bool | None = None

    def shortened(self) -> OperationIdentity:
        """Return the identity with texts of bounded length, and without what FastAPI adds to the name of a function."""
        name, tag = self.id and self.id[:MAX_SOURCE_CHARS], self.tag and self.tag[:MAX_SOURCE_CHARS]
        if name and name.endswith(f"_{self.method}"):
            added = re.sub(r"\W", "_", f"{self.path[:MAX_SOURCE_CHARS]}_{self.method}")
            name = name.removesuffix(added) or name
        return self._replace(path=self.path[:MAX_SOURCE_CHARS], id=name, tag=tag)


def assign_addresses(operations: Iterable[OperationIdentity]) -> dict[tuple[str, str], str]:
    """Return the address of each operation, by method and path."""
    # When several would share an address, the one with the shortest path gets it, whatever the document's order.
    order = sorted(operations, key=lambda operation: (len(operation.path), operation.path, operation.method))
    steps = {operation: _steps(operation.shortened()) for operation in order}
    # A tool is never also a namespace: `tools.x.list.pages` must mean the pages of `tools.x.list`.
    taken = {".".join(some[:length]) for some in steps.values() for length in range(1, len(some))}
    found: dict[tuple[str, str], str] = {}
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))
    for operation in order:
        candidates = _candidates(operation.shortened(), steps[operation], numbers)
        address = next(candidate for candidate in candidates if candidate not in taken)
        found[operation.method, operation.path] = address
        taken.add(address)
    return found


def _candidates(operation: OperationIdentity, steps: list[str], numbers: Mapping[str, Iterator[int]]) -> Iterator[str]:
    """Yield addresses for an operation without end, the best first, all in the same namespace.

    `numbers` continue where an earlier operation stopped. A smaller number is taken already, and a document may have
    thousands of operations with one name.
    """
    plain = ".".join(steps)
    yield plain
    yield f"{plain}_{operation.method}"
    wordy = ".".join([*steps[:-1], _to_step(f"{operation.method} {operation.path}")])
    yield wordy
    for number in numbers[wordy]:
        yield f"{wordy}_{number}"


def _steps(operation: OperationIdentity) -> list[str]:
    if operation.id and not is_generated_id(operation):
        steps = [part for part in re.split(r"[/.]", operation.id) if re.search(r"[A-Za-z0-9]", part)]
        if len(steps) == 1 and _AZURE.match(operation.id):
            steps = operation.id.split("_")
        if len(steps) == 1:
            steps = _grouped(steps[0], operation)
        if steps:
            return [_to_step(step) for step in (steps if len(steps) <= MAX_STEPS else [*steps[: MAX_STEPS - 1], steps[-1]])]
    return _path_steps(operation)


def _grouped(name: str, operation: OperationIdentity) -> list[str]:
    group = operation.tag or next(iter(_fixed_segments(operation.path)), None)
    if group is None:
        return [name]
    rest = re.sub(rf"^{re.escape(group)}[^A-Za-z0-9]+(?=\w)", "", name, flags=re.IGNORECASE)
    return [group, rest] if _letters(group) != _letters(name) else [name]


def _fixed_segments(path: str) -> list[str]:
    """Return the fixed segments of a path, without a leading version or `api`."""
    plain = re.split(r"[?#]", path)[0]
    segments = [_TEMPLATE.sub("", segment) for segment in re.split(r"[/:]", plain)]
    words = [segment for segment in segments if re.search(r"[A-Za-z0-9]", segment)]
    while len(words) > 1 and _VERSION.match(words[0]):
        words.pop(0)
    return words


def _path_steps(operation: OperationIdentity) -> list[str]:
    groups = _fixed_segments(operation.path)
    extra = re.split(r"[?#]", operation.path, maxsplit=1)[1:]
    if extra and "=" in extra[0]:  # `/?Action=CreateUser`, `/#X-Amz-Target=Service.CreateUser`
        name = re.split(r"[=.&]", extra[0].partition("&")[0])[-1]
        return [_to_step(step) for step in (*groups[: MAX_STEPS - 1], name or operation.method)]
    ends_open = bool(_TEMPLATE.search(operation.path.rstrip("/").rpartition("/")[2]))
    last = groups[-1] if groups else ""
    if not ends_open and operation.method == "post" and len(groups) > 1 and not _is_plural(last) and "{" in operation.path:
        return [_to_step(step) for step in groups[-MAX_STEPS:]]
    if operation.method in ("get", "head"):
        verb = "list" if not ends_open and (_is_plural(last) if operation.lists is None else operation.lists) else "get"
        verb = "check" if operation.method == "head" else verb
    elif operation.method == "post" and ends_open:
        verb = "update"
    else:
        verb = _VERBS.get(operation.method, operation.method)
    return [*(_to_step(step) for step in groups[-MAX_STEPS + 1 :]), verb]


def _is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us", "is"))


def is_generated_id(operation: OperationIdentity) -> bool:
    """Return True for an operationId that only repeats method and path: GetAccountsAccount, get_v1_accounts__id_."""
    operation = operation.shortened()
    letters = _letters(operation.id or "")
    if not letters.startswith(operation.method) and not letters.endswith(operation.method):
        return False
    whole = _letters(operation.path)
    unversioned = _letters("/".join(part for part in operation.path.split("/") if not _VERSION.match(part)))
    fixed = _letters("".join(_fixed_segments(operation.path)))
    return letters in {f"{operation.method}{path}" for path in (whole, unversioned, fixed)} | {
        f"{path}{operation.method}" for path in (whole, unversioned, fixed)
    }


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _to_step(text: str) -> str:
    """Return the text as one step of an address: unchanged if it is legal, else its words joined with `_`."""
    # Cut before it is normalised: sorting combining marks takes time that is quadratic in their number.
    text = unicodedata.normalize("NFKC", text[: MAX_STEP_CHARS * 4])[: MAX_STEP_CHARS * 4]
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
    """Return the name of a security scheme as a legal slot name that is not taken."""
    name = plain = _to_step(text)
    number = 2
    while name in taken:
        name, number = f"{plain}_{number}", number + 1
    return name
