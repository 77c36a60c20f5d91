"""The service at which the durable tests count effects: one process for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.durable.receiver import Receiver


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    started = Receiver()
    yield started
    started.close()


@pytest.fixture
def store(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store whose hosts have their effects in a list of its own."""
    monkeypatch.setenv("EFFECTS", f"{receiver.url}/{tmp_path.name}")
    return tmp_path / "store.sqlite"


@pytest.fixture
def effects(tmp_path: Path, receiver: Receiver) -> Callable[[], list[str]]:
    """What has arrived at the service, in order."""
    return lambda: receiver.lines(tmp_path.name)
