"""The commands of `gloveport packages`: their arguments and help texts, as in `commands`."""

from __future__ import annotations

from typing import Any

import click

from gloveport.surfaces.cli.help import PageCommand, PageGroup
from gloveport.surfaces.cli.options import YES, view_options

packages = PageGroup("packages", rare=True, help="Choose the packages of npm and PyPI that programs may import.")


@packages.command(
    "add",
    cls=PageCommand,
    help="Show packages with all that they require, ask, and keep them for programs to import.",
    examples=("gloveport packages add npm:date-fns@4 pypi:tabulate", "gloveport packages add 'pypi:numpy<3'"),
)
@click.argument("requests", nargs=-1, required=True, metavar="PACKAGE…")
@YES
@view_options
def add_packages(requests: tuple[str, ...], *, yes: bool, **view: Any) -> int:
    """Add packages."""
    from gloveport.surfaces.cli.packages.command import ViewOptions, add_command

    return add_command(ViewOptions(**view), requests, yes=yes)


@packages.command(
    "list",
    cls=PageCommand,
    help="List the packages that programs may import.",
    examples=("gloveport packages list",),
)
@view_options
def list_packages(**view: Any) -> int:
    """List packages."""
    from gloveport.surfaces.cli.packages.command import ViewOptions, list_command

    return list_command(ViewOptions(**view))


@packages.command(
    "remove",
    cls=PageCommand,
    help="Remove packages. Their hashes stay: a version with another hash is refused for good.",
    examples=("gloveport packages remove pypi:tabulate",),
)
@click.argument("names", nargs=-1, required=True, metavar="PACKAGE…")
@YES
@view_options
def remove_some(names: tuple[str, ...], *, yes: bool, **view: Any) -> int:
    """Remove packages."""
    from gloveport.surfaces.cli.packages.command import ViewOptions, remove_command

    return remove_command(ViewOptions(**view), names, yes=yes)


@packages.command(
    "verify",
    cls=PageCommand,
    help="Check that the files of all packages are exactly those that you approved.",
    examples=("gloveport packages verify",),
)
@view_options
def verify_packages(**view: Any) -> int:
    """Verify packages."""
    from gloveport.surfaces.cli.packages.command import ViewOptions, verify_command

    return verify_command(ViewOptions(**view))
