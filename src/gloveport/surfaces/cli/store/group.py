"""The commands of `gloveport store`: their arguments and help texts, as in `commands`."""

from __future__ import annotations

from typing import Any

import click

from gloveport.surfaces.cli.help import PageCommand, PageGroup
from gloveport.surfaces.cli.options import complete_files, view_options

store = PageGroup("store", rare=True, help="Copy the store, and change its key, while hosts run.")


@store.command(
    "backup",
    cls=PageCommand,
    help="Copy the store into a new file, as it is at one moment.",
    examples=("gloveport store backup backup.sqlite",),
)
@click.argument("file", metavar="FILE", shell_complete=complete_files)
@view_options
def backup_store(file: str, **view: Any) -> int:
    """Back up the store."""
    from gloveport.surfaces.cli.store.command import backup_command
    from gloveport.surfaces.cli.view import ViewOptions

    return backup_command(ViewOptions(**view), file)


@store.command(
    "rotate-key",
    cls=PageCommand,
    help="Encrypt everything in the store with a new key.",
    examples=("gloveport store rotate-key",),
)
@view_options
def rotate_store_key(**view: Any) -> int:
    """Change the key."""
    from gloveport.surfaces.cli.store.command import rotate_key_command
    from gloveport.surfaces.cli.view import ViewOptions

    return rotate_key_command(ViewOptions(**view))
