"""A change to one of the user's files is written as a whole or not at all."""

from pathlib import Path

import pytest

from gloveport.errors import OptionError
from gloveport.surfaces.file_change import FileChange, read_text


def test_line_ends_and_byte_order_marks_come_through(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\n")
    text = read_text(path)
    assert text == "\ufeffa\r\nb\n"
    FileChange(path, text, text + "c\r\n").make()
    assert path.read_bytes() == b"\xef\xbb\xbfa\r\nb\nc\r\n"


def test_a_file_that_another_program_changed_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("theirs")
    for before in (None, "as it was"):
        with pytest.raises(OptionError) as caught:
            FileChange(path, before, "ours").make()
        assert "changed by another program" in caught.value.message
    path.unlink()
    with pytest.raises(OptionError):
        FileChange(path, "as it was", "ours").make()
    assert list(tmp_path.iterdir()) == []


def test_backups_never_overwrite_each_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("1")
    copies = {FileChange(path, "1", "2").back_up() for _ in range(3)}
    assert len(copies) == 3
    assert all(copy is not None and copy.read_text() == "1" for copy in copies)
    assert FileChange(tmp_path / "none", None, "1").back_up() is None


def test_a_failed_write_is_reported_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OptionError):
        read_text(tmp_path / "folder")
    (tmp_path / "x").symlink_to("/proc/nothing")
    with pytest.raises(OptionError) as caught:
        FileChange(tmp_path / "x" / "file", None, "1").make()
    assert "can't be written" in caught.value.message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "x"]
