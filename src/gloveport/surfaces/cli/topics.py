"""What `gloveport help TOPIC` knows besides commands: exit codes, error codes, and each code on its own."""

from __future__ import annotations

from collections.abc import Mapping

from gloveport.errors import CODES

EXIT_CODES: Mapping[int, str] = {
    0: "the program completed",
    1: "the program failed (or, for doctor, a check did)",
    2: "the command was not understood",
    3: "a policy denied something",
    4: "a credential is missing",
    5: "an approval is pending or was refused",
    6: "a limit was hit: time, memory, calls, size",
    7: "a tool failed and the program did not catch it, or a source is not open",
    8: "no sandbox of the required strength can be made here",
    130: "cancelled with Ctrl-C",
}
TOPICS = ("exit-codes", "codes")


def topic_text(topic: str) -> str | None:
    """The text on a topic; None when there is no such topic."""
    if topic == "exit-codes":
        rows = [f"  {number:>3}  {meaning}" for number, meaning in EXIT_CODES.items()]
        return "\n".join(["What the exit code of `gloveport` says:", "", *rows])
    if topic == "codes":
        rows = [f"  {name:<20} {row.cause}" for name, row in CODES.items()]
        return "\n".join(["Error codes (`gloveport help CODE` says more):", "", *rows])
    row = CODES.get(topic)
    if row is None:
        return None
    exit_ = f"{row.exit}, {EXIT_CODES.get(row.exit, 'the program failed')}"
    return f"{topic}\n\n  cause  {row.cause}\n  fix    {row.fix}\n  exit   {exit_}\n  HTTP   {row.http}"
