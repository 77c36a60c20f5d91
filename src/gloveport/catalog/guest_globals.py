"""Names that a guest's global scope already has; a source with such a name is reached only through `tools`."""

from __future__ import annotations

import keyword

_JAVASCRIPT_WORDS = (
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends "
    "false finally for function if implements import in instanceof interface let new null package private protected "
    "public return static super switch this throw true try typeof var void while with yield"
)
_JAVASCRIPT_GLOBALS = (
    "AbortController AbortSignal AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array Blob "
    "Boolean Buffer CompressionStream CustomEvent DataView Date DecompressionStream Deno Error EvalError Event "
    "EventTarget File FinalizationRegistry Float32Array Float64Array FormData Function Headers Infinity Int16Array "
    "Int32Array Int8Array Intl Iterator JSON Map Math MessageChannel NaN Number Object Promise Proxy RangeError "
    "ReadableStream ReferenceError Reflect RegExp Request Response Set SharedArrayBuffer String Symbol SyntaxError "
    "Temporal TextDecoder TextEncoder TransformStream TypeError URIError URL URLSearchParams Uint16Array Uint32Array "
    "Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet WebAssembly Worker WritableStream atob btoa clearInterval "
    "clearTimeout console crypto decodeURI decodeURIComponent encodeURI encodeURIComponent escape fetch global "
    "globalThis isFinite isNaN navigator parseFloat parseInt performance process queueMicrotask reportError self "
    "setImmediate setInterval setTimeout structuredClone undefined unescape window require module exports"
)
_OURS = "tools codemode emit step state files input ToolError __interfaces __getToolInterface"

GUEST_GLOBALS = frozenset(f"{_JAVASCRIPT_WORDS} {_JAVASCRIPT_GLOBALS} {_OURS}".split()) | frozenset(keyword.kwlist)
"""Keywords and globals of both languages, and our own globals."""
