"""QuickJS through its Python binding, and through ctypes for what that lacks: named modules and unhandled rejections."""

from __future__ import annotations

import ctypes
import os
import resource
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from typing import Any

ORIGIN = "GLOVEPORT_QUICKJS"  # the environment variable with the path of the binding
MIB = 1024 * 1024
# A guest's stack may have 8 MiB; Python itself needs little of it.
STACK_BYTES = 7 * MIB
# The engine collects cycles from this size on: a collection touches, and so copies, the memory that forks share.
FIRST_COLLECTION_BYTES = 4 * MIB
RELIEF_BYTES = 2 * MIB
SHARE = 0.9
FULL = 0.7  # of the limit: the rest is lost to fragmentation

_MODULE, _COMPILE_ONLY = 1, 1 << 5
_BOOL, _UNDEFINED, _EXCEPTION = 1, 3, 6
_POINTER = ctypes.c_void_p


class _Value(ctypes.Structure):
    _fields_ = [("content", ctypes.c_uint64), ("tag", ctypes.c_int64)]


class _EvalOptions(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), ("flags", ctypes.c_int), ("name", ctypes.c_char_p), ("line", ctypes.c_int)]


_TRACKER = ctypes.CFUNCTYPE(None, _POINTER, _Value, _Value, ctypes.c_bool, _POINTER)


class Engine:
    """One QuickJS context."""

    def __init__(self) -> None:
        binding = _load_binding()
        self.failure: type[Exception] = binding.JSException
        self.context: Any = binding.Context()
        self.context.set_max_stack_size(STACK_BYTES)
        self._library = _declare(ctypes.PyDLL(binding.__file__))
        self._runtime, self._pointer = self._find_pointers()
        self._limit = self._idle = self._held = 0
        self._library.JS_SetGCThreshold(self._runtime, FIRST_COLLECTION_BYTES)
        self.version = self._library.JS_GetVersion().decode()

    def _find_pointers(self) -> tuple[int, int]:
        """Return the engine's pointers to the runtime and the context, the two words after the object's header."""
        words = ctypes.cast(id(self.context) + object.__basicsize__, ctypes.POINTER(_POINTER))
        runtime, pointer = words[0], words[1]
        if (
            not runtime
            or not pointer
            or abs(runtime - pointer) > 1 << 40
            or self._library.JS_GetRuntime(pointer) != runtime
        ):
            raise RuntimeError("this build of quickjs-ng has an unknown layout")
        return runtime, pointer

    def compile(self, code: str, name: str) -> str:
        """Define a module under a name. Return what is wrong with its text, or an empty string."""
        text = code.encode()
        options = _EvalOptions(1, _MODULE | _COMPILE_ONLY, name.encode(), 1)
        value = self._library.JS_Eval2(self._pointer, text, len(text), ctypes.byref(options))
        return self._take_exception() if value.tag == _EXCEPTION else ""

    def _take_exception(self) -> str:
        library, context = self._library, self._pointer
        error = library.JS_GetException(context)
        stack = library.JS_GetPropertyStr(context, error, b"stack")
        texts = []
        for value in (error, stack):
            text = library.JS_ToCStringLen2(context, None, value, False)
            texts.append(ctypes.string_at(text).decode() if text else "")
            library.JS_FreeCString(context, text)
            library.JS_FreeValue(context, value)
        return "\n".join(texts)

    def drain(self) -> None:
        """Run all ready jobs. What they throw belongs to promises."""
        step = self.context.execute_pending_job
        while step():
            pass

    def track_rejections(self, name: str) -> None:
        """Call the method `track` of a global with (promise, reason, handled) for unhandled rejections."""
        library = self._library
        whole = library.JS_GetGlobalObject(self._pointer)
        tracker = library.JS_GetPropertyStr(
            self._pointer, library.JS_GetPropertyStr(self._pointer, whole, name.encode()), b"track"
        )

        def tell(context: int, promise: _Value, reason: _Value, handled: bool, _opaque: int) -> None:
            args = (_Value * 3)(promise, reason, _Value(handled, _BOOL))
            library.JS_FreeValue(context, library.JS_Call(context, tracker, _Value(0, _UNDEFINED), 3, args))

        self._kept = _TRACKER(tell)
        library.JS_SetHostPromiseRejectionTracker(self._runtime, self._kept, None)

    def weigh(self) -> None:
        """Note the memory that the engine uses before any program. Measuring takes 0.1 ms, so it is done in advance."""
        self._held = self.context.memory()["malloc_size"]

    def limit(self, memory_mb: int) -> None:
        """Limit the memory of the program to a little less than that of the process, so that the error has a line."""
        self._limit = self._held + int(memory_mb * SHARE * MIB)
        self.context.set_memory_limit(self._limit)
        self._idle = _peak_bytes()

    def was_full(self) -> bool:
        """Return whether the program has used nearly all of its memory."""
        return self._limit > 0 and _peak_bytes() - self._idle > FULL * self._limit

    def relieve(self, doubtful: bool) -> bool:
        """Raise the limit so that the error can be reported. Return False when, if `doubtful`, there was no shortage."""
        if doubtful and not self.was_full():
            return False
        self.context.set_memory_limit(self._limit + RELIEF_BYTES)
        return True


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _load_binding() -> Any:
    path = os.environ.pop(ORIGIN)
    loader = ExtensionFileLoader("_quickjs", path)
    spec = ModuleSpec("_quickjs", loader, origin=path)
    binding = loader.create_module(spec)
    loader.exec_module(binding)
    binding.__file__ = path
    return binding


def _declare(library: ctypes.PyDLL) -> ctypes.PyDLL:
    def say(name: str, result: Any, *arguments: Any) -> None:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments

    text = ctypes.c_char_p
    say("JS_GetVersion", text)
    say("JS_GetRuntime", _POINTER, _POINTER)
    say("JS_SetGCThreshold", None, _POINTER, ctypes.c_size_t)
    say("JS_Eval2", _Value, _POINTER, text, ctypes.c_size_t, ctypes.POINTER(_EvalOptions))
    say("JS_GetException", _Value, _POINTER)
    say("JS_GetGlobalObject", _Value, _POINTER)
    say("JS_GetPropertyStr", _Value, _POINTER, _Value, text)
    say("JS_ToCStringLen2", _POINTER, _POINTER, _POINTER, _Value, ctypes.c_bool)
    say("JS_FreeCString", None, _POINTER, _POINTER)
    say("JS_FreeValue", None, _POINTER, _Value)
    say("JS_Call", _Value, _POINTER, _Value, _Value, ctypes.c_int, ctypes.POINTER(_Value))
    say("JS_SetHostPromiseRejectionTracker", None, _POINTER, _TRACKER, _POINTER)
    return library
