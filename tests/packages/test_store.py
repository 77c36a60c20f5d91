"""The store of packages: what was approved, with its hashes, and its files. Threats D7 and D8."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gloveport.errors import PackageError
from gloveport.packages.package import Package, PackageId
from gloveport.packages.store import LOCK_FILE, PackageFile, PackageStore

TABLE = PackageId("pypi", "table", "1.0")
SCOPED = PackageId("npm", "@scope/name", "2.0.0")


def package(id: PackageId = TABLE, integrity: str = "sha256-one") -> Package:
    return Package(id, integrity, (), ("table",))


def files(**contents: str) -> list[PackageFile]:
    return [PackageFile(path.replace("__", "/"), text.encode()) for path, text in contents.items()]


def test_an_added_package_is_read_by_another_process_with_its_files(tmp_path: Path) -> None:
    mask = os.umask(0o077)
    try:
        added = PackageStore(tmp_path).add(package(SCOPED), files(index_js="1", lib__deep__x="22"))
    finally:
        os.umask(mask)
    store = PackageStore(tmp_path)
    assert store.approved() == {SCOPED: added}
    assert added.size == 3
    assert (store.tree(SCOPED) / "lib/deep/x").read_text() == "22"
    assert store.tree(SCOPED).parent == tmp_path / "trees"
    modes = {path.name: path.stat().st_mode & 0o777 for path in store.tree(SCOPED).rglob("*")}
    assert modes == {"index_js": 0o444, "lib": 0o755, "deep": 0o755, "x": 0o444}  # any user of the machine can read it
    assert not [name for name in os.listdir(tmp_path / "trees") if name.startswith(".")]


@pytest.mark.parametrize(
    "path", ["../x", "/x", "a/../x", "a//x", "./x", "a\\x", "a\x00x", "", "a/", "x" * 300, "a/" * 40 + "x"]
)
def test_a_name_that_is_not_plain_is_refused_and_leaves_nothing(tmp_path: Path, path: str) -> None:
    store = PackageStore(tmp_path)
    with pytest.raises(PackageError, match="holds a file with the name"):
        store.add(package(), [PackageFile("fine", b""), PackageFile(path, b"")])
    assert store.approved() == {}
    assert os.listdir(tmp_path / "trees") == []


@pytest.mark.parametrize("second", ["a", "a/b"])
def test_two_files_of_one_name_are_refused(tmp_path: Path, second: str) -> None:
    with pytest.raises(PackageError, match="twice"):
        PackageStore(tmp_path).add(package(), [PackageFile("a", b"1"), PackageFile(second, b"2")])


def test_a_version_with_another_hash_is_refused_also_after_it_was_removed(tmp_path: Path) -> None:
    store = PackageStore(tmp_path)
    store.add(package(), files(a="1"))
    store.remove([TABLE])
    assert store.approved() == {}
    assert not store.tree(TABLE).exists()
    with pytest.raises(PackageError) as caught:
        store.add(package(integrity="sha256-two"), files(a="2"))
    assert caught.value.code == "package-changed"
    assert store.approved() == {}
    store.add(package(), files(a="1"))
    assert list(store.approved()) == [TABLE]


def test_verify_notices_a_changed_an_added_a_missing_file_and_a_link(tmp_path: Path) -> None:
    store = PackageStore(tmp_path)
    added = store.add(package(), files(a="1", b__c="2"))
    tree = store.tree(TABLE)
    assert store.verify(added) is None
    (tree / "b/d").write_text("")
    assert store.verify(added)
    (tree / "b/d").unlink()
    assert store.verify(added) is None
    (tree / "a").unlink()
    assert store.verify(added)
    (tree / "a").symlink_to("/etc/hostname")
    assert store.verify(added)
    (tree / "a").unlink()
    (tree / "a").write_text("2")
    assert store.verify(added)


def test_a_lock_that_names_a_path_outside_is_not_used(tmp_path: Path) -> None:
    store = PackageStore(tmp_path)
    store.add(package(), files(a="1"))
    lock = json.loads((tmp_path / LOCK_FILE).read_text())
    lock["packages"]["pypi:../../x@1"] = lock["packages"][str(TABLE)]
    (tmp_path / LOCK_FILE).write_text(json.dumps(lock))
    with pytest.raises(Exception, match="name of a package"):
        store.approved()


def test_a_broken_lock_is_reported_and_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text("{")
    with pytest.raises(PackageError, match="can't be read"):
        PackageStore(tmp_path).add(package(), files(a="1"))
    assert (tmp_path / LOCK_FILE).read_text() == "{"
