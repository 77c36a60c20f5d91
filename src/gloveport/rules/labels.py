"""Flow labels: which tools give private or untrusted data, and which send data out (B15, B16).

After private and untrusted data was read, a call that sends data out asks a person, whatever the rules say. Labels follow
calls, not data: what a program does with a result inside the sandbox can't be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from time import localtime, strftime
from typing import Any, NamedTuple

from gloveport.errors import OptionError
from gloveport.suggestions import did_you_mean
from gloveport.types import FETCH_KIND, FETCH_TOOLS, Decision, Tool

LABELS = ("private", "untrusted", "outbound")
NOT = "not "
NETWORK_KINDS = frozenset({"openapi", "graphql", "mcp"})
MAX_SHOWN_READS = 10  # of each label


class ToolLabels(NamedTuple):
    """The labels of a tool. `carries` if its arguments go to the service or server of its source."""

    private: bool = False
    untrusted: bool = False
    outbound: bool = False
    carries: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The labels that it has."""
        return tuple(name for name, has in zip(LABELS, self, strict=False) if has)

    @property
    def gives(self) -> tuple[str, ...]:
        """The labels of what it returns."""
        return tuple(name for name in self.names if name != "outbound")

    def may_send(self, args: Mapping[str, Any]) -> bool:
        """Return whether a call with these arguments can send data out."""
        return self.outbound or (self.carries and bool(args))


@dataclass(frozen=True, slots=True)
class LabelledRead:
    """A call that gave a run private or untrusted data: the address of its tool, the labels, the time and the run."""

    tool: str
    labels: tuple[str, ...]
    at: float
    run: str = ""

    @property
    def source(self) -> str:
        """The source of its tool."""
        return self.tool.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.tool} ({', '.join(self.labels)}) at {strftime('%H:%M:%S', localtime(self.at))}"


@dataclass(frozen=True, slots=True)
class SourceLabels:
    """What labels the tools of a source: whether it gets a credential, and the labels that its settings state.

    `stated` has labels by pattern over addresses without the source's name: `untrusted`, or `not untrusted`.
    """

    has_credential: bool = False
    stated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def labels_of(tool: Tool, source: SourceLabels | None) -> ToolLabels | None:
    """Return the labels of a tool: the defaults, without those that are taken off, with those that are added.

    Return None for a tool about whose calls there is nothing to note or ask.
    """
    path = tool.address.partition(".")[2]
    stated = [*tool.labels]
    for pattern, labels in source.stated.items() if source is not None else ():
        if fnmatchcase(path, pattern):
            stated += labels
    is_network = tool.kind in NETWORK_KINDS
    found = {
        "private": is_network and source is not None and source.has_credential,
        "untrusted": tool.kind in ("mcp", FETCH_KIND),
        "outbound": tool.writes or tool.kind == FETCH_KIND,
    }
    found |= {one.removeprefix(NOT): False for one in stated if one.startswith(NOT)}
    found |= {one: True for one in stated if not one.startswith(NOT)}  # what is added wins: that is the safe side
    made = ToolLabels(**found, carries=is_network)
    return made if any(made) else None


def reads_behind(tool: Tool, labels: ToolLabels, reads: Iterable[LabelledRead]) -> tuple[LabelledRead, ...]:
    """Return the reads because of which a call of a tool asks, the oldest first; none if it need not ask.

    A tool that is not outbound sends data out only if that is another source's: a service may see again what it gave.
    """
    reads = sorted(reads, key=lambda one: one.at)
    private = [one for one in reads if "private" in one.labels]
    untrusted = [one for one in reads if "untrusted" in one.labels]
    if not labels.outbound:
        private = [one for one in private if one.source != tool.source]
    if not private or not untrusted:
        return ()
    shown = {*private[-MAX_SHOWN_READS:], *untrusted[-MAX_SHOWN_READS:]}
    return tuple(one for one in reads if one in shown)


def decision_after(reads: Sequence[LabelledRead], rules: Decision) -> Decision:
    """Return the decision on a call that could send data out after these reads. What the rules deny stays denied."""
    if rules.verdict == "deny":
        return rules
    private, untrusted = ([one for one in reads if label in one.labels][-1].tool for label in ("private", "untrusted"))
    reason = f"it could send out private data (of {private}) on the advice of untrusted data (of {untrusted})"
    if rules.verdict == "ask" and rules.reason:
        reason = f"{rules.reason}; {reason}"
    source = untrusted.partition(".")[0]
    setting = f'if you trust all that {source} returns, set `labels = ["not untrusted"]` under [sources.{source}]'
    return Decision("ask", reason, setting if untrusted not in FETCH_TOOLS else None, rule="flow labels")


def check_labels(given: Any, of: str) -> tuple[str, ...]:
    """Return labels as settings and code state them; raise OptionError for anything else."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise OptionError(f"labels of {of} must be a list of labels, not {given!r:.60}")
    known = (*LABELS, *(f"{NOT}{name}" for name in LABELS))
    for one in (labels := tuple(given)):
        if one not in known:
            meant = did_you_mean(str(one), known)
            message = f"{of} can't have the label {one!r:.40}{f'; {meant}' if meant else ''}"
            raise OptionError(message, hint=f'the labels are {", ".join(LABELS)}; "not LABEL" takes a default off')
    return labels


def check_stated(given: Any, of: str) -> dict[str, tuple[str, ...]]:
    """Return the labels of a source by pattern: from a list for all its tools, or a table of lists; raise OptionError."""
    if not isinstance(given, Mapping):
        return {"*": labels} if (labels := check_labels(given, of)) else {}
    return {str(pattern): check_labels(labels, of) for pattern, labels in given.items()}


def loosens(stated: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether the labels of a source take a default off."""
    return any(one.startswith(NOT) for labels in stated.values() for one in labels)
