"""Stored credentials are sealed, bound to their origins, and readable by their owner alone (D3, D4)."""

import json
import os
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from gloveport import sealing
from gloveport.errors import SealError, ToolError
from gloveport.policy.credentials.configured import ConfiguredCredentials
from gloveport.policy.credentials.vault import StoredCredential, Vault
from gloveport.policy.egress import Egress

CANARY = "canary-6Gh2Vd8Ns1K"
ORIGIN = "https://api.shop.test"
ABOUT = StoredCredential("shop.token", "secret", (ORIGIN,), 1_000.0)


def key(number: int) -> sealing.KeyLoader:
    def load(*, create: bool) -> bytes:
        return bytes([number]) * 32

    return load


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "credentials.json"
    Vault(path, key(1)).write(ABOUT, {"secret": CANARY})
    return path


def change(path: Path, name: str, /, **fields: object) -> None:
    """Change the row `shop.token` without the key, and store it under another name."""
    document = json.loads(path.read_bytes())
    document["credentials"][name] = document["credentials"]["shop.token"] | fields
    path.write_text(json.dumps(document))


def credentials(path: Path, number: int = 1) -> ConfiguredCredentials:
    return ConfiguredCredentials({}, egress=Egress(), vault=Vault(path, key(number)), environment={})


async def test_a_stored_secret_is_found_for_its_origin_alone(path: Path) -> None:
    found = await credentials(path).find("shop", "token", ORIGIN)
    assert found and found.reveal() == CANARY and CANARY not in repr(found)
    for origin in ("https://evil.test", "http://api.shop.test", "https://api.shop.test:444", ""):
        with pytest.raises(ToolError) as caught:
            await credentials(path).find("shop", "token", origin)
        assert caught.value.code == "egress-denied" and CANARY not in repr(vars(caught.value))
    assert await credentials(path).find("shop", "other", ORIGIN) is None


async def test_an_expired_secret_is_not_sent_and_an_account_is_signed_in_to_again(path: Path) -> None:
    Vault(path, key(1)).write(replace(ABOUT, expires=2_000.0), {"secret": CANARY})
    with pytest.raises(ToolError, match="has expired") as caught:
        await credentials(path).find("shop", "token", ORIGIN)
    assert (caught.value.code, caught.value.setting) == ("auth-required", "run `gloveport auth add shop`")
    assert credentials(path).wanted("shop", "token") == "run `gloveport auth add shop` or set GLOVEPORT_SHOP_TOKEN"
    Vault(path, key(1)).write(replace(ABOUT, kind="oauth"), {})
    assert credentials(path).wanted("shop", "token") == "run `gloveport auth login shop`"


def test_the_file_shows_no_value_and_belongs_to_its_owner(path: Path) -> None:
    raw = path.read_bytes()
    assert CANARY.encode() not in raw and b64encode(CANARY.encode()) not in raw
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in Vault(path, key(2)).stored()] == ["shop.token"]  # without the right key


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
async def test_a_file_that_others_can_read_is_refused(path: Path, mode: int) -> None:
    os.chmod(path, mode)
    with pytest.raises(ToolError, match="others can read or change") as caught:
        await credentials(path).find("shop", "token", ORIGIN)
    assert caught.value.code == "seal-broken" and f"chmod 600 {path}" in str(caught.value.setting)


async def test_another_key_is_a_clear_error(path: Path) -> None:
    with pytest.raises(ToolError, match=r"shop\.token .* can't be opened: the key is not the one that sealed it"):
        await credentials(path, 2).find("shop", "token", ORIGIN)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("origins", ["https://evil.test"]),
        ("expires", 9e9),
        ("kind", "oauth"),
        ("sealed", b64encode(bytes(60)).decode()),
        ("sealed", ""),
    ],
)
async def test_a_changed_field_does_not_open(path: Path, field: str, value: object) -> None:
    change(path, "shop.token", **{field: value})
    origin = "https://evil.test" if field == "origins" else ORIGIN
    with pytest.raises(ToolError) as caught:
        await credentials(path).find("shop", "token", origin)
    assert caught.value.code == "seal-broken"


async def test_a_value_moved_to_another_name_does_not_open(path: Path) -> None:
    change(path, "other.token")
    with pytest.raises(ToolError, match="can't be opened"):
        await credentials(path).find("other", "token", ORIGIN)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"credentials": {"a": 1}}', "[" * 100_000, '{"credentials": {"a": {"kind": 1}}}']
)
def test_a_damaged_file_is_a_clear_error(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(SealError, match="is damaged"):
        Vault(path, key(1)).stored()


def test_a_link_in_place_of_the_file_is_refused(path: Path) -> None:
    real = path.rename(path.with_name("real.json"))
    path.symlink_to(real)
    with pytest.raises(SealError, match="can't be read"):
        Vault(path, key(1)).stored()


async def test_a_credential_that_another_process_replaces_is_found_at_once(path: Path) -> None:
    own = credentials(path)
    first = await own.find("shop", "token", ORIGIN)
    assert first
    Vault(path, key(1)).write(ABOUT, {"secret": "canary-next"})
    renewed = await own.renew(first, ORIGIN)
    assert renewed and renewed.reveal() == "canary-next"
    Vault(path, key(1)).remove("shop.token")
    assert await own.find("shop", "token", ORIGIN) is None


def test_the_key_comes_from_the_environment_or_is_created_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(sealing, "keyring_module", lambda: None)
    with pytest.raises(SealError, match="is not here"):
        sealing.load_key(create=False)
    made = sealing.load_key(create=True)
    file = tmp_path / "gloveport" / "key"
    assert (len(made), file.stat().st_mode & 0o777, sealing.load_key(create=False)) == (32, 0o600, made)
    file.chmod(0o644)
    with pytest.raises(SealError, match="others can read"):
        sealing.load_key(create=False)
    monkeypatch.setenv("GLOVEPORT_KEY", b64encode(b"k" * 32).decode())
    assert sealing.load_key(create=False) == b"k" * 32
    monkeypatch.setenv("GLOVEPORT_KEY", "short")
    with pytest.raises(SealError, match="does not hold a key") as caught:
        sealing.load_key(create=False)
    assert "short" not in str(caught.value)


class Ring:
    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, user: str) -> str | None:
        return self.kept.get((service, user))

    def set_password(self, service: str, user: str, password: str) -> None:
        self.kept[service, user] = password


def test_the_key_is_created_in_the_keyring_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(sealing, "keyring_module", lambda: ring)
    made = sealing.load_key(create=True)
    assert sealing.load_key(create=False) == made and len(ring.kept) == 1
    assert not os.path.exists(tmp_path / "gloveport" / "key")
