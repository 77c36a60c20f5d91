# ruff: noqa: F821  the host answers for names that are not defined here
# This runs in Monty before the program. It defines the globals that can be written in Monty's language.
# Monty has no subclasses of exceptions. A failed call is raised as `binascii.Incomplete`, which nothing else raises, with a
# key after its message. `subset.py` rewrites `except ToolError as e` and `raise e` to call the functions below.
import asyncio as _gloveport_asyncio
import json as _gloveport_json
from binascii import Incomplete as _gloveport_failed

state = {}


class ToolError:
    def __init__(
        self, message="", code="tool-failed", origin=None, tool=None, status=None, data=None, retryable=False, hint=None
    ):
        self.message = message
        self.code = code
        self.origin = origin
        self.tool = tool
        self.status = status
        self.data = data
        self.retryable = retryable
        self.hint = hint
        self.args = (message,)

    def __str__(self):
        return self.message

    def __repr__(self):
        return "ToolError(" + repr(self.message) + ")"


def _gloveport_caught(error):
    if not isinstance(error, _gloveport_failed):
        return error
    return ToolError(**_gloveport_fields(str(error)))


def _gloveport_raised(error):
    if error is ToolError:
        error = ToolError()
    if not isinstance(error, ToolError):
        return error
    fields = {
        "message": str(error.message),
        "code": error.code,
        "origin": error.origin,
        "tool": error.tool,
        "status": error.status,
        "data": error.data,
        "retryable": error.retryable,
        "hint": error.hint,
    }
    return _gloveport_failed(_gloveport_keep(fields))


def _gloveport_message(error):
    return error.args[:1] or ("",)


def _gloveport_caused(error, cause):
    error = _gloveport_raised(error() if type(error).__name__ == "type" else error)
    cause = _gloveport_raised(cause)
    _gloveport_cause(type(error).__name__, *_gloveport_message(error), type(cause).__name__, *_gloveport_message(cause))
    return error


def _gloveport_isinstance(value, kind):
    kinds = kind if type(kind) is tuple else (kind,)
    return isinstance(value, kind) or (type(value) is ToolError and (Exception in kinds or BaseException in kinds))


async def _gloveport_tried(awaitable):
    try:
        return await awaitable
    except Exception as error:
        return _gloveport_caught(error)


def _gloveport_gather(*awaitables, return_exceptions=False):
    if return_exceptions:
        awaitables = [_gloveport_tried(each) for each in awaitables]
    return _gloveport_asyncio.gather(*awaitables)


def _gloveport_gather_steps(*awaitables, return_exceptions=False):
    label = _gloveport_label()
    branches = [_gloveport_branch(label, each) for each in awaitables]
    return _gloveport_gather(*branches, return_exceptions=return_exceptions)


async def _gloveport_settled(value):
    return (await value) if type(value).__name__ == "coroutine" else value


# Monty has no context of a task. The driver takes the label of the call or of the sleep that the program waited for, and
# each branch of a `gather` begins with the label of its place in the program.
def step(name, fn, *args):
    if not isinstance(name, str):
        raise TypeError('step takes a name and a function, as in `await step("load", fn)`')
    return _gloveport_step(_gloveport_label(), name, fn, args)


async def _gloveport_step(outer, name, fn, args):
    _gloveport_relabel(outer + "/" + name if outer else name)
    try:
        return await _gloveport_settled(fn(*args))
    finally:
        _gloveport_relabel(outer)


async def _gloveport_branch(label, awaitable):
    _gloveport_relabel(label)
    return await awaitable


class _GloveportResponse:
    def __init__(self, reply, redirected):
        self.status = reply["status"]
        self.ok = 200 <= reply["status"] < 300
        self.reason = reply["reason"]
        self.headers = reply["headers"]
        self.url = reply["url"]
        self.redirected = redirected
        self.body = reply["body"].encode() if type(reply["body"]) is str else reply["body"]

    def text(self):
        return self.body.decode("utf-8", "replace")

    def json(self):
        return _gloveport_json.loads(self.text())


async def fetch(url, *, method=None, headers=None, body=None, json=None, redirect="follow"):
    # Each request is a call of the host, each redirect one more, as in the other engines.
    sent = {str(name).lower(): str(value) for name, value in (headers or {}).items()}
    if json is not None:
        body = _gloveport_json.dumps(json)
        sent = {"content-type": "application/json", **sent}
    args = {"method": method or ("GET" if body is None else "POST"), "url": url, "headers": sent}
    if body is not None:
        args["body"] = body
    for followed in range(21):
        reads = args["method"] in ("GET", "HEAD", "OPTIONS")
        reply = await (tools.egress.read(args) if reads else tools.egress.write(args))
        status, location = reply["status"], reply.get("location")
        if location is None or redirect == "manual":
            return _GloveportResponse(reply, followed > 0)
        if redirect == "error":
            raise ValueError("fetch failed: " + reply["url"] + " redirects to " + location)
        if reply["url"].split("/")[:3] != location.split("/")[:3]:
            secret = ("authorization", "cookie", "proxy-authorization")
            args["headers"] = {name: value for name, value in args["headers"].items() if name not in secret}
        if (status == 303 and not reads) or (status in (301, 302) and args["method"] == "POST"):
            kept = {name: value for name, value in args["headers"].items() if not name.startswith("content-")}
            args = {"method": "GET", "headers": kept}
        args = {**args, "url": location}
    raise ValueError("fetch failed: more than 20 redirects")


def _gloveport_rehearse():
    # Run common code once in advance: the first time takes longest.
    rows = [{"n": n, "kind": ["a", "b"][n % 2]} for n in range(20)]
    groups = {}
    for row in rows:
        group = groups.setdefault(row["kind"], {"count": 0, "best": None})
        group["count"] += 1
        if group["best"] is None or row["n"] > group["best"]["n"]:
            group["best"] = row
    ranked = sorted([{**group, "half": group["count"] / 2} for group in groups.values()], key=lambda group: -group["half"])
    lines = [f"{group['half']:>8.2f} {group['best']['kind']:6}" for group in ranked]
    return len(" ".join([word for line in lines for word in line.split()]))


_gloveport_rehearse()
