"""What a service echoes of a secret is blacked out, however it was encoded on the way."""

import base64
import html
import itertools
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.policy.credentials import Attachment, Secret
from gloveport.policy.egress import Request
from gloveport.policy.redaction import Redaction
from tests.holding import MAX_HOLD_MS, cpu_ms, longest_hold_ms
from tests.policy.servers import LOCAL, ok, send, serving

SECRETS = [
    "ghp_7Yq2Lw9Zk4Tn8Vb3",
    "a\"b\\c/d e+f&g<h>i'j=k",
    "пароль-ключ-42",
    "pass:word@host/%41",
    "\U0001f511 key and more",
    "back\\\\slashes%25and\\n&amp;",
]
ENCODINGS: dict[str, Callable[[str], str | bytes]] = {
    "raw": str,
    "url": lambda text: quote(text, safe=""),
    "url, lower case": lambda text: quote(text, safe="").replace("%2F", "%2f").replace("%2B", "%2b").replace("%D0", "%d0"),
    "url, some": quote,
    "form": quote_plus,
    "json": lambda text: json.dumps(text)[1:-1],
    "json, unicode": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "json in json": lambda text: json.dumps(json.dumps(text))[3:-3],
    "json in json in json": lambda text: json.dumps(json.dumps(json.dumps(text, ensure_ascii=False)))[6:-6],
    "url in a url": lambda text: quote(quote(text, safe=""), safe=""),
    "form in a url, in json": lambda text: json.dumps(quote(quote_plus(text)))[1:-1],
    "html in html": lambda text: html.escape(html.escape(text)),
    "base64 of a url": lambda text: base64.b64encode(quote(text, safe="").encode()),
    "json, slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "json, for html": lambda text: json.dumps(text)[1:-1].replace("<", "\\u003C").replace("&", "\\u0026"),
    "html": html.escape,
    "html, numbers": lambda text: "".join(char if char.isalnum() else f"&#{ord(char)};" for char in text),
    "base64": lambda text: base64.b64encode(text.encode()),
    "base64 after one": lambda text: base64.b64encode(b"x" + text.encode() + b"y"),
    "base64 after two": lambda text: base64.b64encode(b"xy" + text.encode()),
    "base64 after three": lambda text: base64.b64encode(b"xyz" + text.encode() + b"zz"),
    "base64, url-safe": lambda text: base64.urlsafe_b64encode(text.encode()),
    "base64, url-safe, in json after five": lambda text: base64.urlsafe_b64encode(b"12345" + text.encode() + b"}"),
    "base64 in a url": lambda text: quote(base64.b64encode(text.encode()), safe=""),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16, the other way": lambda text: text.encode("utf-16-be"),
}


ESCAPES = ["url", "url, some", "form", "json", "json, unicode", "json, slashes", "json, for html", "html"]


def redaction(text: str, place: str = "header", template: str = "{}") -> Redaction:
    return Redaction([Attachment(place, "X", Secret(text, "shop.key"), frozenset(), template)])  # type: ignore[arg-type]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("secret", SECRETS)
def test_an_echo_is_blacked_out_in_every_encoding(secret: str, encoding: str) -> None:
    echo = ENCODINGS[encoding](secret)
    echo = echo.encode() if isinstance(echo, str) else echo
    cleaned = redaction(secret).clean(b"before " + echo + b" after")
    assert "•••(shop.key)".encode() in cleaned
    assert cleaned.startswith(b"before ")
    assert cleaned.endswith(b" after")
    # Beside the neighbours that some encodings have here, a character at each end is left that mixes in bits of theirs.
    assert len(cleaned) - len("before •••(shop.key) after".encode()) <= 14


@pytest.mark.parametrize("first", ["raw", "base64", *ESCAPES])
def test_an_echo_that_was_escaped_in_several_ways_is_blacked_out(first: str) -> None:
    for secret, second, third in itertools.product(SECRETS, ESCAPES, ["raw", *ESCAPES]):
        echo = secret
        for encoding in (first, second, third):
            escaped = ENCODINGS[encoding](echo)
            echo = escaped if isinstance(escaped, str) else escaped.decode()
        assert "•••(shop.key)".encode() in redaction(secret).clean(b"before " + echo.encode() + b" after"), (secret, echo)


def test_of_a_user_and_password_the_password_alone_is_blacked_out_and_the_user_is_not() -> None:
    clean = redaction("ada:correct horse", "basic").clean
    for echo in (b"correct horse", b"correct+horse", b"ada:correct horse"):
        assert clean(echo).endswith("•••(shop.key)".encode())
    for encoded in (
        base64.b64encode(b"ada:correct horse"),
        base64.b64encode(b"correct horse"),
        base64.b64encode(base64.b64encode(b"ada:correct horse")),
    ):
        assert "•••(shop.key)".encode() in clean(encoded)
        assert encoded[4:-4] not in clean(encoded)
    assert clean(b"ada") == b"ada"


@pytest.mark.long
def test_every_echo_is_blacked_out_wherever_it_is() -> None:
    for secret in (*SECRETS, "-_-_-_-_-"):
        body = b"filling ".join(b"%d " % n * (n % 700) + secret.encode() for n in range(1500))
        cleaned = redaction(secret).clean(body)
        assert cleaned == body.replace(secret.encode(), "•••(shop.key)".encode())


def test_where_no_secret_is_the_same_bytes_come_back() -> None:
    body = b"x" * 1000
    assert redaction(SECRETS[0]).clean(body) is body
    assert Redaction([]).clean(body) is body


def test_a_secret_too_short_to_tell_from_other_text_is_left() -> None:
    assert redaction("abc").clean(b"abc") == b"abc"
    assert redaction("abcd").clean(b"abcd 61626364") == "•••(shop.key) 61626364".encode()


@given(secret=st.text(min_size=8, max_size=40), before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_no_secret_of_any_characters_comes_back(secret: str, before: bytes, after: bytes) -> None:
    try:
        raw = secret.encode()
    except UnicodeEncodeError:
        return
    cleaned = redaction(secret).clean(before + raw + after)
    assert raw not in cleaned
    encoded = redaction(secret).clean(base64.b64encode(before + raw + after))
    assert "•••".encode() in encoded


def test_no_text_makes_the_search_take_long() -> None:
    clean = redaction("ab\\\\\\c%%%25&&d").clean
    for text in (b"ab" + b"\\" * 1_000_000, b"ab\\\\c%" + b"25" * 1_000_000, b"ab\\c%%%25&" + b"amp;" * 1_000_000):
        assert clean(text * 2 + b"d") == text * 2 + b"d"


@pytest.mark.parametrize("first", "-$ é&%+\\<")
@pytest.mark.parametrize("slash", [b"\\", b"%5c", b"%255C", b"&#92;", b"\\u005c", b"\\u0026", b"%26amp%3b", b"&amp;"])
def test_no_run_of_escapes_makes_the_search_take_long(first: str, slash: bytes) -> None:
    run = slash * (1_000_000 // len(slash))
    assert redaction(f"{first}abcdefgh1234").clean(run + b"! abcdefgh1234").startswith(run)
    assert redaction(f"zz{first}{first}abcdefgh1234").clean(b"zz" + run + b"! abcdefgh1234").startswith(b"zz" + run)


JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwi-_aWF0IjoxNTE2fQ.SflKxwRJSM-eKKF2QT4fw-pMeJf36P_Ok6yJV_ad"
SIGNS = "-_./+=%&\\;#!?@$^*()[]{}<>|~`':, "
NEAR_MISSES = {
    "a token": (JWT, JWT[:-1] + " "),
    "a token in a URL": (JWT, quote(JWT[:-1]).replace("-", "%2D").replace("_", "%255f").replace(".", "%2e") + " "),
    "a token in JSON": (JWT, JWT[:-1].replace("-", "\\u002d").replace("_", "\\\\u005f") + " "),
    "signs": (SIGNS, SIGNS[:-1] + "!"),
    "signs in a URL": (SIGNS, quote(SIGNS[:-1], safe="") + "!"),
    "percent signs": ("%" * 30 + "x", "%25"),
    "percent signs and digits": ("%25" * 20 + "x1", "%2525"),
    "ampersands": ("&amp;" * 15 + "z", "&amp;amp;"),
    "backslashes": ("ab" + "\\" * 20 + "c1", "ab" + "\\" * 200),
    "only backslashes": ("\\" * 20 + "<", "\\"),
    "dashes": ("-" * 40 + "_", "-"),
    "overlapping anchors": ("a-2525", "25"),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses_take_linear_time(name: str) -> None:
    secret, unit = NEAR_MISSES[name]
    clean = redaction(secret).clean
    text = unit.encode() * (200_000 // len(unit))
    clean(text[:1000])  # compiles the patterns
    once, twice = cpu_ms(clean, text), cpu_ms(clean, text * 2)
    assert twice < 4 * once + 20
    assert twice < 2000
    assert longest_hold_ms(clean, text * 10) < MAX_HOLD_MS


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_among_near_misses_no_secret_comes_back(name: str) -> None:
    secret, unit = NEAR_MISSES[name]
    for times in (1, 100, 20_000):
        text = unit.encode() * times + secret.encode() + unit.encode() * times
        assert secret.encode() not in redaction(secret).clean(text)


@given(
    secret=st.text("ab%25&;\\-u", min_size=4, max_size=12), first=st.sampled_from(ESCAPES), second=st.sampled_from(ESCAPES)
)
def test_no_secret_of_characters_that_escapes_consist_of_comes_back(secret: str, first: str, second: str) -> None:
    echo = ENCODINGS[second](ENCODINGS[first](secret))  # type: ignore[arg-type]
    assert "•••".encode() in redaction(secret).clean(f"x {echo} y".encode())


@pytest.mark.parametrize("secret", ["ab\\<cd1234", "ab\\\u00e9cd1234", "ab\\\\\U0001f511cd1234"])
def test_a_backslash_before_what_is_escaped_hides_nothing(secret: str) -> None:
    for text in (json.dumps(secret), json.dumps(secret).replace("<", "\\u003c"), json.dumps(json.dumps(secret))):
        assert b"cd1234" not in redaction(secret).clean(text.encode())


@pytest.mark.integration
@pytest.mark.parametrize("place", ["header", "query", "cookie", "basic"])
async def test_a_service_that_echoes_everything_shows_nothing(place: str) -> None:
    secret = "user:c4nary+7Yq/2Lw9Zk4T"

    async def echo(head: bytes, writer: object) -> None:
        lines = [line.split(b" ", 1)[1].decode() for line in head.strip().split(b"\r\n")]
        shown = json.dumps([head.decode(), base64.b64encode(head).decode(), head.hex(), *lines]).encode()
        writer.write(ok(shown, f"X-Echo: {lines[-1]}", f"X-Line: {lines[0]}", status=f"200 {lines[-1]}"))  # type: ignore[attr-defined]

    async with serving(echo) as server:
        attached = Attachment(place, "key", Secret(secret, "shop.key"), frozenset({server.origin}), "{}")  # type: ignore[arg-type]
        reply = await send(Request("GET", f"{server.origin}/x"), LOCAL, [attached])
    everything = reply.body.decode() + json.dumps(dict(reply.headers)) + reply.url + repr(reply) + repr(attached)
    assert everything.count("•••(shop.key)") >= 3
    for part in ("c4nary", "7Yq", "2Lw9Zk4T", b"c4nary".hex(), base64.b64encode(secret.encode()).decode()[4:-4]):
        assert part not in everything
