"""A guest that announces itself, then echoes its input."""

import os


def preload() -> None:
    """Do nothing."""


def main() -> None:
    """Echo until the end of the input."""
    os.write(1, b"ready\n")
    while data := os.read(0, 65536):
        os.write(1, data)
