"""What the store keeps of requests and their answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gloveport.approvals.request import Answer
from gloveport.approvals.shelf import ApprovalShelf
from tests.approvals.test_desk import request

NO, YES = Answer(False, "ada", reason="not today"), Answer(True, "bo", args={"amount": 7})


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[ApprovalShelf]:
    with closing(ApprovalShelf(tmp_path / "store.sqlite")) as opened:
        yield opened


@pytest.mark.parametrize("stored", [None, YES, NO])
def test_the_answer_that_the_host_has_taken_is_the_one_that_is_kept(shelf: ApprovalShelf, stored: Answer | None) -> None:
    """A person may answer at the host itself while another answer, which comes too late, lies in the store."""
    asked = request()
    shelf.put(asked, "host")
    if stored is not None:
        shelf.answer({asked.id: asked.digest}, stored)
    shelf.end(asked.id, "taken", YES)
    assert (shelf.find(asked.id).state, shelf.find(asked.id).answer) == ("taken", YES)
    assert [(one.id, answer) for one, answer, _ in shelf.taken(asked.run)] == [(asked.id, YES)]


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (Answer(True, "code", happened=True, value=object()), None),
        (Answer(False, "ada", reason="\ud800"), Answer(False, "ada", reason="\ufffd")),
    ],
)
def test_a_request_ends_whatever_its_answer_holds(shelf: ApprovalShelf, answer: Answer, kept: Any) -> None:
    asked = request()
    shelf.put(asked, "host")
    shelf.end(asked.id, "taken", answer)
    assert (shelf.find(asked.id).state, shelf.find(asked.id).answer) == ("taken", kept)


def test_the_version_of_a_list_changes_with_the_list(shelf: ApprovalShelf) -> None:
    first, second = request(), request(call=2, args={"amount": 6})
    versions = [shelf.version()]

    def changed() -> bool:
        versions.append(shelf.version())
        return versions[-1] not in versions[:-1]

    shelf.put(first, "host")
    assert changed()
    assert shelf.version() == versions[-1]
    shelf.put(second, "host")
    assert changed()
    shelf.answer({first.id: first.digest}, NO)
    assert changed()
    shelf.refuse(first.id, "that is no amount")
    assert changed()
    shelf.end(first.id, "taken", YES)
    shelf.end(second.id, "expired")
    assert shelf.version() == versions[0]
