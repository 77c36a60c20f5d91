"""`tools.<source>.<path…>(…)`: attribute reads collect a path, and calling it sends it.

Nothing here knows which tools exist: the host looks up every name.
"""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

from .clock import Clock
from .errors import ToolError
from .loop import Loop
from .steps import label
from .values import CrossingError, encode, quote
from .wire import Channel, FrameTooLarge

Future = asyncio.Future

_set_result = Future.set_result
_set_exception = Future.set_exception
_done = Future.done
_current_step = label.get


class Call(Future):
    """A pending tool call. Await it for its result; it also works with gather, wait, shield and create_task."""

    # The creator sets these: a constructor would take longer than everything else about a call.
    _tool_call = True
    _tool = "…"
    _serial = 0

    def __hash__(self) -> int:
        return self._serial

    def __eq__(self, other: object) -> bool:
        return self is other if asyncio.isfuture(other) else self._misused("compared")

    def __repr__(self) -> str:
        return f"<call of tools.{self._tool}: {'done' if self.done() else 'await it'}>"

    def __getattr__(self, name: str) -> NoReturn:
        example = f"(await tools.{self._tool}(…)).{name}"
        raise AttributeError(f"the call of tools.{self._tool} has no attribute {name!r}: await it first, as in `{example}`")

    def _misused(self, how: str) -> NoReturn:
        tool = f"tools.{self._tool}"
        raise TypeError(f"the call of {tool} can't be {how}: await it first, as in `await {tool}(…)`")


def _misuse(how: str) -> Any:
    def refuse(self: Call, *others: Any) -> NoReturn:
        self._misused(how)

    return refuse


for _how, _names in {
    "subscripted": "__getitem__ __setitem__ __delitem__",
    "iterated over": "__iter__ __reversed__ __contains__ __len__ __aiter__",
    "compared": "__lt__ __le__ __gt__ __ge__",
    "used as a condition": "__bool__",
    "used as a number": "__int__ __float__ __index__ __round__ __neg__ __abs__",
    "used with an operator": "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ "
    "__mod__ __or__ __and__",
}.items():
    for _name in _names.split():
        setattr(Call, _name, _misuse(_how))


class Calls:
    """The calls of a run, numbered in order and kept until their reply."""

    def __init__(self, channel: Channel, clock: Clock, loop: Loop) -> None:
        self._channel = channel
        self._clock = clock
        self._loop = loop
        self._last_id = 0
        self._failed: list[Call] = []
        self._parameters: dict[str, list[str]] = {}
        self.waiting: dict[int, Call] = {}

    def make(self, name: str, quoted: str, args: Any, options: dict[str, Any]) -> Call:
        """Send a call and return it. Awaiting it gives the result."""
        try:
            if options:
                if args:
                    options = self.name(name, args, options)
                text = f"[{encode(options, 'argument')}]"
            else:
                text = f"[{encode(args[0], 'argument')}]" if len(args) == 1 else _list(args)
            self._last_id = call_id = self._last_id + 1
            step = f",{quote(step)}" if (step := _current_step()) else ""
            self._channel.send(f'["call",{call_id},{quoted},{text}{step}]')
        except (CrossingError, FrameTooLarge) as error:
            code = "frame-too-large" if isinstance(error, FrameTooLarge) else "bad-value"
            raise ToolError(f"tools.{name}: {error}", code=code, tool=name) from None
        call = self.waiting[call_id] = Call(loop=self._loop)
        call._tool, call._serial = name, self._loop.serials.next()
        return call

    def name(self, tool: str, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        """Return values by position and by keyword as keywords: the first fill the tool's parameters in their order."""
        if tool not in self._parameters:
            self._parameters[tool] = self.sync("parameters", [tool])
        names = self._parameters[tool]
        if len(args) > len(names):
            problem = f"{len(args)} values before its keywords are too many: its parameters are {', '.join(names)}"
        elif twice := [name for name in names[: len(args)] if name in options]:
            problem = f"it got `{twice[0]}` twice, by position and by keyword"
        else:
            return {**dict(zip(names, args, strict=False)), **options}
        raise ToolError(f"bad arguments for `tools.{tool}`: {problem}", code="bad-arguments", tool=tool)

    def settle(self, reply: list[Any]) -> None:
        """Take the reply to a call."""
        call = self.waiting.pop(reply[2], None)
        if call is None or _done(call):  # the program has cancelled it
            return
        if reply[3]:
            _set_result(call, reply[4])
            return
        _set_exception(call, ToolError.received(reply[4]))
        if len(self._failed) < 20:
            self._failed.append(call)

    def sync(self, name: str, args: list[Any]) -> Any:
        """Return the answer of the host. The whole guest waits for it."""
        self._last_id = call_id = self._last_id + 1
        self._channel.send(f'["call_sync",{call_id},{quote(name)},{_list(args)}]')
        return self._reply_to(call_id)

    def _reply_to(self, call_id: int) -> Any:
        self._channel.flush()
        reply = self._channel.wait_for("reply", call_id)
        self._clock.advance(reply[1])
        if reply[3]:
            return reply[4]
        raise ToolError.received(reply[4])

    def wait(self, name: str, args: dict[str, Any]) -> Any:
        """Return the result of a call. The whole guest waits for it."""
        self.make(name, quote(name), (args,), {})
        del self.waiting[self._last_id]
        return self._reply_to(self._last_id)

    def unseen_failures(self) -> list[BaseException]:
        """Return the errors of failed calls that were never awaited."""
        failed = [call for call in self._failed if call._log_traceback]
        return [error for call in failed if (error := call.exception()) is not None]


def _list(args: Any) -> str:
    named = "argument" if len(args) == 1 else "argument {}"
    return f"[{','.join([encode(item, named.format(index)) for index, item in enumerate(args, 1)])}]"


class Node:
    """A tool or a group of tools. The instance caches each attribute that was read once."""

    _is_coroutine = getattr(asyncio.coroutines, "_is_coroutine", None)  # for asyncio.iscoroutinefunction

    def __init__(self, calls: Calls, path: str) -> None:
        object.__setattr__(self, "\0", (calls.make, calls.sync, path, quote(path)))

    def __getattr__(self, name: str) -> Node:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Node:
        if not isinstance(name, str):
            raise TypeError(f"{self!r} takes the name of a tool, not {name!r}; a tool is called with parentheses")
        make, sync, path, _ = self.__dict__["\0"]
        child = self.__dict__.get(name)
        if child is None:
            child = self.__dict__[name] = Node._below(make, sync, f"{path}.{name}" if path else name)
        return child

    @staticmethod
    def _below(make: Any, sync: Any, path: str) -> Node:
        child = object.__new__(_Pages if path.endswith(".pages") else Node)
        child.__dict__["\0"] = (make, sync, path, quote(path))
        return child

    def __call__(self, /, *args: Any, **options: Any) -> Call:
        make, _, path, quoted = self.__dict__["\0"]
        if not path:
            raise ToolError("`tools` is not a function: call tools.<source>.<name>(…)", code="unknown-tool")
        return make(path, quoted, args, options)

    def _names(self) -> list[str]:
        _, sync, path, _ = self.__dict__["\0"]
        return sync("names", [path])

    def __dir__(self) -> list[str]:
        return Node._names(self)

    def __iter__(self) -> Any:
        return iter(Node._names(self))

    def __contains__(self, name: object) -> bool:
        return name in Node._names(self)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        path = self.__dict__["\0"][2]
        return f"<tools.{path}>" if path else "<tools>"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self!r} can't be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self!r} can't be changed")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} can't be copied")


class _Pages(Node):
    """`tools.x.list.pages`: iterates over the pages of `tools.x.list`, each fetched on demand; or a tool of that name."""

    def __call__(self, /, *args: Any, **options: Any) -> Any:
        make, sync, path, quoted = self.__dict__["\0"]
        base = path.removesuffix(".pages")
        if "\1" not in self.__dict__:
            self.__dict__["\1"] = sync("pages", [base])
        if not self.__dict__["\1"]:
            return make(path, quoted, args, options)
        if options:
            args = (make.__self__.name(base, args, options) if args else options,)
        return _pages(make, path, quote(f"{base}#page"), args)


async def _pages(make: Any, path: str, quoted: str, args: tuple[Any, ...]) -> Any:
    cursor = None
    while True:
        page = await make(path, quoted, (*args, cursor), {})
        if not page["empty"]:
            yield page["value"]
        cursor = page["next"]
        if cursor is None:
            return
