"""The plain interpreter without our prelude: the control outside of the jail, and the fallen guest inside.

Says ready, hears one line of JSON {code, inputs, nonce}, runs the program once for each input, and waits to be killed.
Whatever arrives at the host is searched for tokens, so nothing here needs to be believed.
"""

import ast
import builtins
import json
import os
import traceback

_write, _read = os.write, os.read


class ToolError(Exception):
    """What a failed call raises."""


class Tools:
    """Tools that answer at once, from inside the same process."""

    async def echo(self, value=None):
        return value

    async def add(self, a, b):
        return a + b

    async def fail(self, message="no luck", **_):
        raise ToolError(message)

    async def betray(self):
        raise ToolError("betrayed")

    crash = fail


def preload():
    """Nothing: this is the interpreter as it comes."""


def say(text):
    data = text.encode("utf-8", "backslashreplace") + b"\n"
    while data:
        data = data[_write(1, data) :]


def hear():
    data = b""
    while not data.endswith(b"\n"):
        piece = _read(0, 65536)
        if not piece:
            os._exit(0)
        data += piece
    return json.loads(data)


def run(code):
    """What the program's last expression gives."""
    tree = ast.parse(code)
    if isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.Assign([ast.Name("OUT", ast.Store())], tree.body[-1].value)
    space = {"__name__": "__main__"}
    made = compile(ast.fix_missing_locations(tree), "program.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    value = eval(made, space)
    if value is not None:  # a coroutine
        import asyncio

        asyncio.run(value)
    return space.get("OUT")


def main():
    """Run what is heard."""
    show, nonce_of = repr, "{}-{}".format
    say("ready")
    plan = hear()
    builtins.tools, builtins.ToolError, builtins.emit = Tools(), ToolError, lambda value: say(show(value))
    for given in plan["inputs"]:
        if given["round"] == 2:
            say(nonce_of("middle", plan["nonce"]))
        builtins.input = given
        try:
            say(show(run(plan["code"])))
        except BaseException:
            say(traceback.format_exc())
    say(nonce_of("end", plan["nonce"]))
    _read(0, 1)
    os._exit(0)


if __name__ == "__main__":
    main()
