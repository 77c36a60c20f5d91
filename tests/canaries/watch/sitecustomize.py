"""Found by every Python process of `make canaries`: notes each secret that Gloveport handles, where only the search looks."""

import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from typing import Any

VARIABLE = "CANARY_SECRETS"


def note(label: str, *texts: object) -> None:
    """Add secrets to the list of this process."""
    place = os.path.join(os.environ[VARIABLE], str(os.getpid()))
    lines = "".join(f"{label}\t{text.encode().hex()}\n" for text in texts if isinstance(text, str) and text)
    with open(place, "a") as file:
        file.write(lines)


def _watch_secrets(module: Any) -> None:
    made = module.Secret.__init__

    def init(self: Any, text: str, label: str) -> None:
        note(label, text)
        made(self, text, label)

    module.Secret.__init__ = init


def _watch_vault(module: Any) -> None:
    read, write = module.Vault.read, module.Vault.write

    def value_of(name: str, value: Any) -> None:
        tokens, client = value.get("tokens", {}), value.get("client", {})
        note(name, value.get("secret"), tokens.get("access"), tokens.get("refresh"), client.get("secret"))

    def watched_read(self: Any, name: str) -> Any:
        found = read(self, name)
        if found is not None:
            value_of(name, found[1])
        return found

    def watched_write(self: Any, about: Any, value: Any) -> None:
        value_of(about.name, value)
        write(self, about, value)

    module.Vault.read, module.Vault.write = watched_read, watched_write


WATCHED: dict[str, Callable[[Any], None]] = {
    "gloveport.policy.credentials": _watch_secrets,
    "gloveport.policy.credentials.vault": _watch_vault,
}


class Watch(MetaPathFinder):
    """Changes the modules that handle secrets, when they are first imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in WATCHED:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                WATCHED[name](module)

            spec.loader.exec_module = exec_module
        return spec


if os.environ.get(VARIABLE):
    sys.meta_path.insert(0, Watch())
