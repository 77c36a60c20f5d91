"""What a program finds in the sandbox, and what it does not (design §2)."""

from typing import Any

import pytest

from gloveport import Gloveport

pytestmark = pytest.mark.integration


async def value_of(port: Gloveport, code: str, **options: Any) -> Any:
    outcome = await port.run(code, **options)
    assert outcome.error is None, outcome.error
    return outcome.value


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "prototype"])
async def test_the_names_of_the_language_are_no_tools(port: Gloveport, name: str) -> None:
    outcome = await port.run(f"try {{ await (tools as any)['{name}']({{}}) }} catch {{}} return 1")
    assert outcome.value == 1
    assert outcome.calls == ()


async def test_the_platform_offers_what_programs_use(port: Gloveport) -> None:
    code = """
      const bytes = new TextEncoder().encode("hé");
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
      const key = await crypto.subtle.importKey("raw", bytes, {name: "HMAC", hash: "SHA-256"}, false, ["sign"]);
      const made = await crypto.subtle.generateKey({name: "AES-GCM", length: 256}, true, ["encrypt", "decrypt"]);
      const stream = new Blob(["abc".repeat(100)]).stream().pipeThrough(new CompressionStream("gzip"));
      const packed = await new Response(stream).bytes();
      const unpacked = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
      const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms));
      await Promise.race([sleep(10), sleep(5000)]);
      return {
        url: new URL("../b?c=d", "https://example.com/a/x").href,
        params: new URLSearchParams({a: "1 2"}).toString(),
        digest: digest.length, sign: (await crypto.subtle.sign("HMAC", key, bytes)).byteLength, made: made.type,
        b64: btoa("x"), uuid: crypto.randomUUID().length, unpacked: unpacked.length,
        clone: structuredClone(new Map([[1, new Date(0)]])),
        number: new Intl.NumberFormat("de-DE").format(1234.5),
        date: new Intl.DateTimeFormat("en-GB", {timeZone: "UTC"}).format(new Date(0)),
        decoded: new TextDecoder().decode(bytes), buffer: Buffer.from("ab").toString("hex"),
        headers: new Headers({a: "b"}).get("A"), iso: new Date(0).toISOString(),
        aborted: AbortSignal.abort().aborted, locale: [3, 20].toLocaleString("en-US"),
        temporal: Temporal.PlainDate.from("2026-01-31").add({months: 1}).toString(),
        groups: Object.groupBy([1, 2, 3], (x) => x % 2 ? "odd" : "even"),
      };
    """
    value = await value_of(port, code)
    assert value["url"] == "https://example.com/b?c=d"
    assert value["digest"] == 32
    assert value["sign"] == 32
    assert value["made"] == "secret"
    assert value["unpacked"] == 300
    assert value["number"] == "1.234,5"
    assert value["date"] == "01/01/1970"
    assert value["decoded"] == "hé"
    assert value["buffer"] == "6162"
    assert value["temporal"] == "2026-02-28"
    assert value["groups"] == {"odd": [1, 3], "even": [2]}


GONE = [
    "Deno", "Worker", "SharedWorker", "localStorage", "sessionStorage", "caches", "CacheStorage", "indexedDB", "WebSocket",
    "EventSource", "BroadcastChannel", "MessageChannel", "XMLHttpRequest", "importScripts", "WeakRef",
    "FinalizationRegistry", "SharedArrayBuffer", "Atomics", "alert", "prompt", "confirm", "location", "GPU", "close",
    "WebAssembly", "require", "module", "__dirname", "FileReader", "OffscreenCanvas", "reportError", "Navigator", "$$begin",
]  # fmt: skip


def look_for(names: list[str]) -> str:
    """The program that returns those of the names that exist."""
    found = (
        f"typeof {name} + typeof (globalThis as any)['{name}'] === 'undefinedundefined' ? '' : '{name}'" for name in names
    )
    return f"return [{', '.join(found)}].filter(Boolean)"


async def test_what_leads_out_or_cannot_be_replayed_is_not_there(port: Gloveport) -> None:
    assert await value_of(port, look_for(["URL"])) == ["URL"]
    assert await value_of(port, look_for(GONE)) == []


async def test_only_listed_globals_are_there(port: Gloveport) -> None:
    names = await value_of(
        port,
        """const seen = new Set<string>(); let o: any = globalThis;
        while (o) { for (const k of Object.getOwnPropertyNames(o)) seen.add(k); o = Object.getPrototypeOf(o) } return [...seen]""",
    )
    assert not {name for name in names if "deno" in name.lower() or name.startswith("op_")}
    assert len(names) < 200


EVALS = ["eval('1 + 1')", "new Function('return 2')()", "(0, eval)('2')", "(async () => {}).constructor('return 2')()"]


@pytest.mark.parametrize("code", EVALS)
async def test_code_from_strings_is_off(port: Gloveport, code: str) -> None:
    outcome = await port.run(f"return {code}")
    assert outcome.error is not None
    assert outcome.error.type == "EvalError"


WASM = "new Uint8Array([0,97,115,109,1,0,0,0,1,5,1,96,0,1,127,3,2,1,0,7,5,1,1,102,0,0,10,6,1,4,0,65,42,11])"


async def test_eval_and_webassembly_can_be_allowed() -> None:
    async with Gloveport(allow_eval=True, allow_wasm=True, spare=1) as own:
        for code in EVALS:
            assert (await own.run(f"return await ({code})")).value == 2
        code = f"const {{ instance }} = await WebAssembly.instantiate({WASM}); return instance.exports.f()"
        assert (await own.run(code)).value == 42


async def test_buffer_is_there_for_programs_that_speak_of_it_and_brings_nothing_along(port: Gloveport) -> None:
    with_it = await port.run("[Buffer.from('ab').toString('hex'), typeof Atomics, typeof SharedArrayBuffer, typeof Deno]")
    assert with_it.value == ["6162", "undefined", "undefined", "undefined"]
    without = await port.run("[new ArrayBuffer(2).byteLength, typeof globalThis['Buf' + 'fer']]")
    assert without.value == [2, "undefined"]


async def test_temporal_is_there_for_programs_that_speak_of_it_by_any_name(port: Gloveport) -> None:
    with_it = await port.run("[typeof Temporal.Now.instant, new Date(0).toTemporalInstant().toString()]")
    assert with_it.value == ["function", "1970-01-01T00:00:00Z"]
    by_method = await port.run("new Date(0).toTemporalInstant().constructor.name")
    assert by_method.value == "Instant"
    without = await port.run("typeof globalThis['Temp' + 'oral']")
    assert without.value == "undefined"


async def test_subtle_crypto_is_made_late_from_what_the_program_can_not_have_replaced(port: Gloveport) -> None:
    code = """
      Array.prototype[Symbol.iterator] = function* () { yield "generateKey"; } as any;
      Object.defineProperty(Object.prototype, "get", {get() { throw new Error("planted"); }, configurable: true});
      const digest = await crypto.subtle.digest("SHA-256", new Uint8Array(1));
      const names = Object.getOwnPropertyNames(crypto.subtle);
      return {bytes: digest.byteLength, same: crypto.subtle === crypto.subtle, names: names.length};
    """
    assert await value_of(port, code) == {"bytes": 32, "same": True, "names": 12}
