"""Each reference is read by its provider; commands start without a shell, end in time, and show nothing they wrote."""

import sys
from pathlib import Path

import pytest

from gloveport.config import load_config
from gloveport.errors import OptionError, ToolError
from gloveport.policy.credentials import Secret, providers
from gloveport.policy.credentials.configured import ConfiguredCredentials
from gloveport.policy.credentials.providers import PROVIDERS, CommandProvider, KeyringProvider, StaticProvider
from gloveport.policy.credentials.vault import Vault
from gloveport.policy.egress import Egress

CANARY = "canary-3Jk7Pm1Rx5W"


def configured(reference: str, tmp_path: Path, **more: object) -> ConfiguredCredentials:
    vault = Vault(tmp_path / "none.json")
    return ConfiguredCredentials({("shop", "token"): reference}, egress=Egress(), vault=vault, environment={}, **more)  # type: ignore[arg-type]


async def text_of(credentials: ConfiguredCredentials) -> str | None:
    found = await credentials.find("shop", "token", "https://shop.test")
    return found.reveal() if found else None


@pytest.mark.integration
async def test_a_command_gives_its_output_and_gets_its_words_as_they_are(tmp_path: Path) -> None:
    script = tmp_path / "say.py"
    script.write_text("import sys; print('|'.join(sys.argv[1:]))")
    reference = f"command:{sys.executable} {script} 'op://a b/c' $HOME ; * `id`"
    assert await text_of(configured(reference, tmp_path)) == "op://a b/c|$HOME|;|*|`id`"


@pytest.mark.integration
async def test_a_command_runs_once_until_its_secret_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text("import sys; f = open(sys.argv[1], 'a+'); f.write('x'); f.seek(0); print('canary', len(f.read()))")
    credentials = configured(f"command:{sys.executable} {script} {tmp_path / 'count'}", tmp_path)
    assert [await text_of(credentials) for _ in range(3)] == ["canary 1"] * 3
    renewed = await credentials.renew(Secret("canary 1", "shop.token"), "https://shop.test")
    assert renewed and renewed.reveal() == "canary 2"
    stale = await credentials.renew(Secret("canary 1", "shop.token"), "https://shop.test")
    assert stale and stale.reveal() == "canary 2"  # a late refusal of the old one starts nothing


@pytest.mark.integration
@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (f"import sys; print('{CANARY}'); sys.exit('{CANARY}')", "ended with status 1"),
        ("import time; time.sleep(60)", "took longer than 1 s"),
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", "wrote more than 65,536 bytes"),
        ("import os; os.fork() or __import__('time').sleep(60)", "took longer than 1 s"),
    ],
)
async def test_a_command_that_fails_is_named_and_what_it_wrote_is_not(tmp_path: Path, code: str, problem: str) -> None:
    script = tmp_path / "bad.py"
    script.write_text(code)
    credentials = configured(f"command:{sys.executable} {script}", tmp_path, providers={"command": CommandProvider(1)})
    with pytest.raises(ToolError) as caught:
        await text_of(credentials)
    assert caught.value.code == "auth-required" and problem in caught.value.message
    assert CANARY not in repr(vars(caught.value))


@pytest.mark.integration
async def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"the command `/no/such` for a credential can't be started"):
        await text_of(configured("command:/no/such thing", tmp_path))


class Ring:
    def get_password(self, service: str, user: str) -> str | None:
        return CANARY if (service, user) == ("work/git", "me") else None


async def test_a_keyring_gives_the_password_of_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "keyring_module", Ring)
    assert await text_of(configured("keyring:work/git/me", tmp_path)) == CANARY
    assert await text_of(configured("keyring:work/you", tmp_path)) is None
    assert KeyringProvider().wanted("work/git/me") == "run `keyring set work/git me`"


async def test_without_a_keyring_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "keyring_module", lambda: None)
    with pytest.raises(ToolError, match="there is no keyring here") as caught:
        await text_of(configured("keyring:work/me", tmp_path))
    assert "gloveport[keyring]" in str(caught.value.setting)


async def test_a_provider_is_an_entry_of_the_registry_like_the_built_in_ones(tmp_path: Path) -> None:
    providers = PROVIDERS.with_added("bank", {"bank": StaticProvider({"main": CANARY})})
    assert await text_of(configured("bank:main", tmp_path, providers=providers)) == CANARY
    with pytest.raises(OptionError, match="is not `env:NAME`"):
        configured("bank:main", tmp_path)


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        (CANARY, "is not `env:NAME`"),
        ("enw:NAME", "did you mean `env`?"),
        (f"https://{CANARY}", "is not `env:NAME`"),
        ("env:", "is not `env:NAME`"),
        ("keyring:service", "must name a service and a user"),
        ("command:'", "is not a command"),
        ("command: ", "is not a command"),
        ("stored:../x", "names no stored credential"),
    ],
)
def test_settings_name_a_reference_and_its_line_and_never_show_a_secret(
    tmp_path: Path, reference: str, problem: str
) -> None:
    file = tmp_path / "gloveport.toml"
    file.write_text(f'[sources.shop]\nopenapi = "x.json"\n[sources.shop.credentials]\ntoken = """{reference}"""\n')
    with pytest.raises(OptionError) as caught:
        load_config(file, user=tmp_path / "none.toml")
    assert caught.value.message.startswith(f"{file}:4: the credential token of the source shop")
    assert problem in caught.value.message
    assert CANARY not in f"{caught.value} {caught.value.hint}"
