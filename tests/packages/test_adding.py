"""Packages are resolved, fetched, checked and kept from a real registry on loopback. Threats D7 and D8."""

from __future__ import annotations

import io
import stat
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gloveport.errors import PackageError
from gloveport.host.packages.package_additions import fetch_packages, keep_packages, remove_packages
from gloveport.packages.fetched import FetchedPackage
from gloveport.packages.package import Package, PackageId, PackageRequest
from gloveport.packages.pypi import _rows_of_html
from gloveport.packages.registries import npm_registry, pypi_indexes
from gloveport.packages.store import PackageStore
from tests.packages.registry import Registry, make_tarball, serve

pytestmark = pytest.mark.integration


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    with serve(Registry()) as served:
        for name, value in served.environment.items():
            monkeypatch.setenv(name, value)
        yield served


async def fetch(store: PackageStore, *requests: str) -> dict[str, FetchedPackage]:
    found = await fetch_packages([PackageRequest.parse(text) for text in requests], store, "kernel")
    return {str(each.package.id): each for each in found}


async def add(store: PackageStore, record: Path, *requests: str) -> dict[str, Package]:
    found = await fetch(store, *requests)
    keep_packages(found.values(), store, record, requests)
    return {str(each): package for each, package in store.approved().items()}


async def test_a_package_of_npm_is_kept_with_what_it_requires(registry: Registry, tmp_path: Path) -> None:
    store = PackageStore(tmp_path / "packages")
    registry.npm("leaf", "1.0.0", {"index.js": "exports.x = 1"})
    registry.npm("leaf", "1.4.0", {"index.js": "exports.x = 2"}, scripts={"install": "touch /tmp/installed"})
    registry.npm("leaf", "2.0.0", {"index.js": "exports.x = 3"})
    registry.npm("@scope/top", "3.1.0", {"lib/a.js": "1"}, dependencies={"leaf": "^1.0.0", "other": "npm:leaf@2"})
    approved = await add(store, tmp_path / "store.sqlite", "npm:@scope/top@3")
    assert set(approved) == {"npm:@scope/top@3.1.0", "npm:leaf@1.4.0", "npm:leaf@2.0.0"}
    top = approved["npm:@scope/top@3.1.0"]
    assert [str(each) for each in top.requires] == ["npm:leaf@1.4.0", "npm:leaf@2.0.0"]
    assert (store.tree(PackageId("npm", "leaf", "1.4.0")) / "index.js").read_text() == "exports.x = 2"
    assert store.verify(top) is None
    again = len(registry.fetched)
    assert await fetch(store, "npm:@scope/top@3.1.0") == {}
    assert not [path for path in registry.fetched[again:] if path.startswith("/tar/")]


@pytest.mark.parametrize("as_json", [True, False])
async def test_a_wheel_is_kept_with_what_it_requires_here(registry: Registry, tmp_path: Path, as_json: bool) -> None:
    registry.as_json = as_json
    store = PackageStore(tmp_path / "packages")
    registry.wheel("leaf", "1.0", {"leaf.py": "x = 1"})
    registry.wheel("leaf", "1.5", {"leaf.py": "x = 2"})
    registry.wheel("leaf", "2.0", {"leaf.py": "x = 3"})
    registry.wheel("leaf", "1.9rc1", {"leaf.py": "x = 4"})
    registry.wheel("other", "1.0", {"other.py": ""})
    registry.wheel("top", "1.0", {"top/__init__.py": "", "top-1.0.data/scripts/run": "#!"}, "Leaf<2", "gone; extra == 'x'")
    registry.wheel("top", "1.1", {"top/__init__.py": ""}, tag="cp27-cp27m-win32")
    approved = await add(store, tmp_path / "store.sqlite", "pypi:top", "pypi:other")
    assert set(approved) == {"pypi:leaf@1.5", "pypi:other@1.0", "pypi:top@1.0"}
    top = approved["pypi:top@1.0"]
    assert (top.modules, top.native, [str(each) for each in top.requires]) == (("top",), False, ["pypi:leaf@1.5"])
    names = {path.relative_to(store.tree(top.id)).as_posix() for path in store.tree(top.id).rglob("*") if path.is_file()}
    assert {name.partition(".cpython")[0] for name in names} == {
        "top/__init__.py",
        "top/__pycache__/__init__",
        "top-1.0.dist-info/METADATA",
    }


async def test_a_late_requirement_leads_to_another_version(registry: Registry, tmp_path: Path) -> None:
    registry.wheel("shared", "1.0", {"shared.py": ""})
    registry.wheel("shared", "2.0", {"shared.py": ""})
    registry.wheel("first", "1.0", {"first.py": ""}, "shared>=1")
    registry.wheel("second", "1.0", {"second.py": ""}, "deep")
    registry.wheel("deep", "1.0", {"deep.py": ""}, "shared<2")
    found = await fetch(PackageStore(tmp_path), "pypi:first", "pypi:second")
    assert "pypi:shared@1.0" in found
    assert "pypi:shared@2.0" not in found


async def test_python_keeps_one_version_of_a_package(registry: Registry, tmp_path: Path) -> None:
    store = PackageStore(tmp_path / "packages")
    registry.wheel("leaf", "1.0", {"leaf.py": ""})
    await add(store, tmp_path / "store.sqlite", "pypi:leaf")
    registry.wheel("leaf", "2.0", {"leaf.py": ""})
    registry.wheel("top", "1.0", {"top.py": ""}, "leaf>=2")
    with pytest.raises(PackageError, match=r"pypi:leaf@1.0 is approved, and pypi:top requires pypi:leaf>=2"):
        await fetch(store, "pypi:top")


async def test_an_archive_with_another_hash_is_refused(registry: Registry, tmp_path: Path) -> None:
    registry.npm("leaf", "1.0.0", {"index.js": ""})
    registry.wheel("leaf", "1.0", {"leaf.py": ""})
    registry.corrupted = True
    for request in ("npm:leaf", "pypi:leaf"):
        with pytest.raises(PackageError) as caught:
            await fetch(PackageStore(tmp_path), request)
        assert caught.value.code == "package-changed"


async def test_a_version_that_was_published_anew_is_refused(registry: Registry, tmp_path: Path) -> None:
    store = PackageStore(tmp_path / "packages")
    registry.npm("leaf", "1.0.0", {"index.js": "1"})
    await add(store, tmp_path / "store.sqlite", "npm:leaf")
    remove_packages(["npm:leaf"], store, tmp_path / "store.sqlite")
    registry.npm("leaf", "1.0.0", {"index.js": "2"})
    with pytest.raises(PackageError, match="is not what it was") as caught:
        await fetch(store, "npm:leaf")
    assert caught.value.code == "package-changed"


def member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


@pytest.mark.parametrize(
    "archive",
    [
        make_tarball({}, member("package/x", tarfile.SYMTYPE, "/etc/passwd")),
        make_tarball({"a": ""}, member("package/x", tarfile.LNKTYPE, "package/a")),
        make_tarball({}, member("package/x", tarfile.CHRTYPE)),
        make_tarball({}, member("package/x", tarfile.FIFOTYPE)),
        make_tarball({"../../x": ""}),
        make_tarball({"/etc/x": ""}),
        make_tarball({"a\nb": ""}),
        make_tarball({"zeros": bytes(2**20)}) + b"trailing",
        b"no archive",
        b"",
    ],
    ids=["link", "hard-link", "device", "pipe", "parent", "absolute", "newline", "trailing", "garbage", "empty"],
)
async def test_a_hostile_tarball_leaves_nothing(registry: Registry, tmp_path: Path, archive: bytes) -> None:
    registry.tarballs["bad"] = {"1.0.0": (archive, {})}
    store = PackageStore(tmp_path)
    if archive.endswith(b"trailing"):
        assert set(await fetch(store, "npm:bad")) == {"npm:bad@1.0.0"}  # what follows the archive is not read
        return
    with pytest.raises(PackageError):
        await fetch(store, "npm:bad")
    assert not tmp_path.joinpath("trees").exists()


async def test_a_bomb_is_refused_by_its_size(registry: Registry, tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(30):
            archive.writestr(f"bomb/{number}", bytes(20 * 2**20))
    registry.wheels["bomb"] = {"bomb-1.0-py3-none-any.whl": made.getvalue()}
    assert len(made.getvalue()) < 2**20
    with pytest.raises(PackageError, match="can't be unpacked"):
        await fetch(PackageStore(tmp_path), "pypi:bomb")


NO_INDEX = {
    "text that is no JSON": ("application/json", b"<html>"),
    "JSON that is nested too deep": ("application/json", b"[" * 1000 + b"]" * 1000),
    "JSON of too many objects": ("application/json", b"[" + b"{}," * 1_000_001 + b"{}]"),
    "tags that are never closed": ("text/html", b"<a " * 3_000_000),
    "quotes that are never closed": ("text/html", b"<a '\"" * 3_000_000),
    "too much HTML": ("text/html", b" " * 17_000_000),
}


@pytest.mark.parametrize("what", NO_INDEX)
async def test_what_is_no_index_is_refused_soon(registry: Registry, tmp_path: Path, what: str) -> None:
    registry.index = NO_INDEX[what]
    began = time.process_time()
    for ecosystem in ("pypi", "npm"):
        with pytest.raises(PackageError, match=r"something else than|no index|no wheel|more than"):
            await fetch(PackageStore(tmp_path / "packages"), f"{ecosystem}:leaf")
    assert time.process_time() - began < 10


def test_the_links_of_a_page_are_read_with_their_attributes() -> None:
    page = """<A class=x HREF="../a-1.whl#sha256=ab&x" data-requires-python="&gt;=3.8">a</A>
        <a href='b-1%2B2.whl' data-yanked="">b</a> <a name=x> <abbr href="c"> <a href="d"""
    assert list(_rows_of_html(page)) == [
        {"url": "../a-1.whl", "filename": "a-1.whl", "sha256": "ab", "requires-python": ">=3.8"},
        {"url": "b-1%2B2.whl", "filename": "b-1+2.whl", "sha256": "", "yanked": ""},
    ]


async def test_a_link_in_a_wheel_is_refused(registry: Registry, tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        link = zipfile.ZipInfo("bad/passwd")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    registry.wheels["bad"] = {"bad-1.0-py3-none-any.whl": made.getvalue()}
    with pytest.raises(PackageError, match="is a link or a device"):
        await fetch(PackageStore(tmp_path), "pypi:bad")


async def test_a_name_that_is_misspelt_is_explained(registry: Registry, tmp_path: Path) -> None:
    for request, meant in (("npm:lodahs", "lodash"), ("pypi:tabluate", "tabulate")):
        with pytest.raises(PackageError) as caught:
            await fetch(PackageStore(tmp_path), request)
        assert meant in (caught.value.hint or "")


async def test_a_private_registry_gets_its_token_and_nobody_else_does(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.npm("leaf", "1.0.0", {"index.js": ""})
    registry.token = "Bearer very-secret"
    place = registry.base.removeprefix("http:")
    (tmp_path / "npmrc").write_text(f"{place}/npm/:_authToken=${{LEAF_TOKEN}}\n")
    monkeypatch.setenv("NPM_CONFIG_USERCONFIG", str(tmp_path / "npmrc"))
    monkeypatch.setenv("LEAF_TOKEN", "very-secret")
    assert set(await fetch(PackageStore(tmp_path), "npm:leaf")) == {"npm:leaf@1.0.0"}
    monkeypatch.setenv("LEAF_TOKEN", "wrong-token")
    with pytest.raises(PackageError, match="answers 401") as caught:
        await fetch(PackageStore(tmp_path), "npm:leaf")
    assert "wrong-token" not in str(caught.value)
    with serve(Registry()) as other:
        other.npm("leaf", "1.0.0", {"index.js": ""})
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"{other.base}/npm/")
        assert npm_registry("leaf").credential is None


def test_the_indexes_are_those_of_the_users_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://me:word@pip.example/simple\nextra-index-url =\n  https://extra.example/s\n  file:///x\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    extra, main = pypi_indexes()
    assert (extra.url, main.url) == ("https://extra.example/s/", "https://pip.example/simple/")
    assert main.credential is not None
    assert main.credential.origins == {"https://pip.example"}
    assert "word" not in repr(main)
