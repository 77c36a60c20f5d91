"""Finds the browser of the tests, and installs it with `python -m tests.web.chromium`: `make setup` does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

PACKAGE = "chromium"
MISSING = (
    f"The tests of the pages need a Chromium. Install Debian's (`apt-get install {PACKAGE}`, as root), "
    "or name another one in $CHROMIUM."
)
APT_OPTIONS = ("-qq", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300")


def chromium() -> str | None:
    """Return the path of the browser: $CHROMIUM, or the one on the path; None without one."""
    return shutil.which(os.environ.get("CHROMIUM") or PACKAGE)


def install() -> bool:
    """Install Debian's chromium if there is no browser, and this user is root; return whether there is one now."""
    if chromium() is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in ("install", "update", "install"):  # the list of packages may be missing, or old
            names = (PACKAGE,) if command == "install" else ()
            done = subprocess.run(["apt-get", command, *APT_OPTIONS, *names], env=environment, check=False)
            if chromium() is not None or (done.returncode and command == "update"):
                break
    return chromium() is not None


if __name__ == "__main__":
    if not install():
        sys.exit(MISSING)
