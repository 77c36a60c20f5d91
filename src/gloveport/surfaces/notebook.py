"""`%load_ext gloveport` for IPython and Jupyter: the cell magic `%%gloveport ts|py` runs a cell as a program."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from gloveport.errors import OptionError

if TYPE_CHECKING:
    from gloveport.host.port import Gloveport
    from gloveport.types import Language, Outcome

LANGUAGES: dict[str, Language] = {"ts": "typescript", "js": "javascript", "py": "python"}
MAGIC_NAME = "gloveport"


class Shell(Protocol):
    """What the magic uses of IPython's shell."""

    user_ns: dict[str, Any]
    input_transformers_post: list[Any]

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None:
        """Add a magic."""
        ...


class _Line(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(message, hint="%%gloveport ts|js|py [--port NAME] [--to NAME]")


class CellMagic:
    """The cell magic of one shell. Cells without `--port` share a port with the settings of the current folder."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._own: Gloveport | None = None
        self._line = _Line(prog="%%gloveport", add_help=False)
        self._line.add_argument("language", choices=LANGUAGES, nargs="?", default="ts")
        self._line.add_argument("--port")
        self._line.add_argument("--to")

    def register(self) -> None:
        """Add the magic to the shell."""
        self._shell.register_magic_function(self.run, "cell", MAGIC_NAME)
        self._shell.input_transformers_post.append(_awaited)

    async def run(self, line: str, cell: str) -> Outcome:
        """Run the cell and return its outcome, which the notebook shows. `--to` also gives it a name."""
        given = self._line.parse_args(shlex.split(line))
        outcome = await self._port(given.port).run(cell, language=LANGUAGES[given.language])
        if given.to is not None:
            self._shell.user_ns[given.to] = outcome
        return outcome

    def close(self) -> None:
        """Remove the magic from the shell, and close its own port."""
        self._shell.input_transformers_post.remove(_awaited)
        if self._own is not None:
            self._own.close_sync()
            self._own = None

    def _port(self, name: str | None) -> Gloveport:
        from gloveport.host.port import Gloveport
        from gloveport.surfaces.settings import load_settings

        if name is not None:
            found = self._shell.user_ns.get(name)
            if not isinstance(found, Gloveport):
                raise OptionError(f"{name} is not a Gloveport", hint=f"{name} = Gloveport(tools=[…])")
            return found
        if self._own is None:
            # Entered without the shell's event loop, it has one in a thread of its own, and is closed at exit.
            self._own = Gloveport(config=load_settings(None)).__enter__()
        return self._own


_magics: dict[int, CellMagic] = {}  # by shell


def load_ipython_extension(shell: Shell) -> None:
    """Add the magic to a shell, once."""
    if id(shell) not in _magics:
        _magics[id(shell)] = CellMagic(shell)
        _magics[id(shell)].register()


def unload_ipython_extension(shell: Shell) -> None:
    """Remove the magic from a shell."""
    if (magic := _magics.pop(id(shell), None)) is not None:
        magic.close()


def _awaited(lines: list[str]) -> list[str]:
    """Return the lines of a cell of ours with an `await`, which IPython does not write before a magic by itself."""
    mine = bool(lines) and lines[0].startswith(f"get_ipython().run_cell_magic({MAGIC_NAME!r},")
    return [f"await {lines[0]}", *lines[1:]] if mine else lines
