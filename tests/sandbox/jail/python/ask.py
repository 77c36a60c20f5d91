"""A guest that runs the Python it is sent, as JSON strings on lines, and answers with `out` as JSON on a line."""

import json
import sys
import traceback
from typing import Any


def preload() -> None:
    """Load what an ordinary engine would."""
    import asyncio
    import collections
    import ctypes
    import dataclasses
    import datetime
    import decimal
    import random
    import re
    import threading
    import typing

    assert all((asyncio, collections, ctypes, dataclasses, datetime, decimal, random, re, threading, typing))


def main() -> None:
    """Answer until the end of the input."""
    lines = open(0, "rb", closefd=False)  # noqa: SIM115  as long as the process
    answers = open(1, "wb", buffering=0, closefd=False)  # noqa: SIM115
    answers.write(b'"ready"\n')
    space: dict[str, Any] = {"__name__": "__main__"}
    for line in lines:
        space["out"] = None
        try:
            exec(json.loads(line), space)
        except BaseException:  # noqa: BLE001  the asker hears of it
            space["out"] = {"error": traceback.format_exc()}
        answers.write(json.dumps(space["out"]).encode() + b"\n")
    sys.stdout.flush()
