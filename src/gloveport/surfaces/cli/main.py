"""The entry point of the command line: runs a command, and turns every failure into an exit code.

Importing this loads nothing else: a shell that completes the name of a tool waits for it. A command loads click and little
else: `gloveport --help` must answer at once.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # `typing` is not for a key press
if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from gloveport.errors import GloveportError


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    if "_GLOVEPORT_COMPLETE" in os.environ:
        from gloveport.surfaces.cli.start.completion import complete_tool

        if complete_tool():
            return
    args = list(sys.argv[1:] if argv is None else argv)
    gc.disable()  # while the command's modules are loaded
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from gloveport.surfaces.terminal import fill_closed_descriptors

        fill_closed_descriptors()
    status = _main(args)
    gc.freeze()  # the interpreter need not look for garbage when it ends
    sys.exit(status)


def _main(args: list[str]) -> int:
    import click

    from gloveport.errors import GloveportError
    from gloveport.surfaces.cli.commands import cli

    try:
        return cli.main(args, prog_name="gloveport", standalone_mode=False) or 0
    except click.UsageError as error:
        return _fail(args, _usage_error(error))
    except GloveportError as error:
        return _fail(args, error)
    except (KeyboardInterrupt, click.Abort):
        return _fail(args, GloveportError("the command was interrupted", code="cancelled"))
    except PermissionError as error:  # of the user's folders, or of one above the working folder
        return _fail(args, _permission_error(error))
    except Exception as error:  # the outer edge: a defect of ours is reported as one
        import logging

        logging.getLogger("gloveport").error("the command failed", exc_info=error)
        return _fail(args, GloveportError(f"internal error in Gloveport: {type(error).__name__}"))


def _permission_error(error: PermissionError) -> GloveportError:
    """Return the system's refusal as ours, with the file and what to do."""
    from gloveport.errors import OptionError

    hint = "let this user read and write its folder, or set HOME or the XDG variables to other folders"
    return OptionError(f"{error.filename or 'a file'} can't be used: {error.strerror}", hint=hint)


def _usage_error(error: click.UsageError) -> GloveportError:
    """Return click's error as ours, with a hint."""
    import click

    from gloveport.errors import OptionError
    from gloveport.suggestions import did_you_mean

    ctx = error.ctx
    path = ctx.command_path if ctx else "gloveport"
    if isinstance(error, click.NoSuchOption) and ctx is not None:
        known = [name for parameter in ctx.command.get_params(ctx) for name in parameter.opts if name.startswith("--")]
        hint = did_you_mean(error.option_name, known) or f"`{path} --help` lists the options"
        return OptionError(f"there is no option `{error.option_name}`", hint=hint)
    if isinstance(error, click.MissingParameter) and error.param is not None and ctx is not None:
        return OptionError(f"`{path}` needs {error.param.make_metavar(ctx)}", hint=f"`{path} --help` shows how to use it")
    return OptionError(error.format_message(), hint=f"`{path} --help` shows how to use it")


def _fail(args: list[str], error: GloveportError) -> int:
    """Report the error as the command line asks for it, and return its exit code."""
    from gloveport.errors import ToolError, exit_code
    from gloveport.surfaces.cli.run.outcome_report import write_problem
    from gloveport.surfaces.terminal import stdout, stream

    if any(arg == "--json" or arg.partition("=")[0] == "--fields" for arg in args):
        from gloveport.surfaces.documents import problem_document, write_document

        write_document(stream(stdout()), problem_document(error))
    else:
        write_problem(stream(sys.stderr), error)
    return exit_code(error.code, error.origin if isinstance(error, ToolError) else "gloveport")


if __name__ == "__main__":
    main()
