"""The options of commands that read the settings and show something."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from gloveport.config import Config, SourceConfig
from gloveport.errors import OptionError
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.settings import load_settings
from gloveport.surfaces.terminal import Stream, stream


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """The options --json and --color, and the streams that a command writes to."""

    as_json: bool
    color: str

    @property
    def out(self) -> Stream:
        """Standard output, for the answer."""
        return stream(sys.stdout, self.color)

    @property
    def err(self) -> Stream:
        """Standard error, for everything else."""
        return stream(sys.stderr, self.color)


@dataclass(frozen=True, slots=True)
class ViewOptions(OutputOptions):
    """The options --config, --json, --color and --no-pager."""

    config: str | None
    pages: bool = True

    def settings(self, *, quiet: bool = False) -> Config:
        """Return the settings of this user and this project."""
        return load_settings(self.config, color=self.color, quiet=quiet)

    @property
    def store_path(self) -> Path:
        """The file of the store."""
        return self.settings(quiet=True).governance.store_path

    def source(self, name: str) -> SourceConfig:
        """Return the configured source of this name; raise OptionError when there is none."""
        found = {config.name: config for config in self.settings().sources}
        if name not in found:
            known = f"the sources are {', '.join(found)}" if found else "`gloveport add` adds one"
            known += "; for those of another folder, run this there, or give --config FILE"
            raise OptionError(f"there is no source `{name}`", hint=did_you_mean(name, found) or known)
        return found[name]
