"""A guest that says that it is there, then gives back what it is sent."""

import os


def preload() -> None:
    """Nothing."""


def main() -> None:
    """Echo until the end of the input."""
    os.write(1, b"ready\n")
    while data := os.read(0, 65536):
        os.write(1, data)
