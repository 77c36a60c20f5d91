"""There is one parser: what it read is what is judged, dialled and written on the wire; what it can't read plainly is refused."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gloveport.errors import ToolError
from gloveport.policy.egress import Reach, Request
from gloveport.urls import join, parse, shown
from tests.policy.servers import Dialled, ok, send, serving, words

TRICKS = [
    "http://1.1.1.1 &@2.2.2.2# @3.3.3.3/",
    "http://1.1.1.1@2.2.2.2/",
    "http://1.1.1.1:80@2.2.2.2:80/",
    "http://user:secret-word@2.2.2.2/",
    "http://1.1.1.1\\@2.2.2.2/",
    "http://1.1.1.1\\.2.2.2.2/",
    "http:\\\\2.2.2.2/",
    "http:/2.2.2.2/",
    "http:2.2.2.2/",
    "http:///2.2.2.2/",
    "//2.2.2.2/",
    "2.2.2.2",
    "",
    "http://",
    "http:///",
    "http://?x",
    "http://#x",
    "http://:80/",
    "http://[::1",
    "http://::1]/",
    "http://2.2.2.2:/",
    "http://2.2.2.2:80a/",
    "http://2.2.2.2\t/",
    "http://2.2.2.2/\r\nHost: evil",
    "http://2.2.2.2/a b",
    "http://2.2.2.2/a\x00b",
    "http://2.2.2.2/a\x7fb",
    "http://2.2.2.2/ü",
    "http://2.2.2.2/?q=ü",
    "http://bücher.example/",
    " http://2.2.2.2/",
    "http://2.2.2.2/\n",
    "\thttp://2.2.2.2/",
    "ht\ntp://2.2.2.2/",
    "file:///etc/passwd",
    "ftp://2.2.2.2/",
    "gopher://2.2.2.2:6379/_x",
    "javascript:alert(1)",
    "data:text/plain,x",
    "unix:///run/docker.sock",
    "ws://2.2.2.2/",
    "httpſ://2.2.2.2/",
    "http://a..b/",
    "http://" + "a" * 254 + "/",
    "http://2.2.2.2/" + "a" * 70_000,
    "http://2.2.2.2%2f@3.3.3.3/",
    "http://2.2.2.2,3.3.3.3/",
    "http://2.2.2.2;3.3.3.3/",
    "http://(2.2.2.2)/",
    "http://2.2.2.2*/",
    "http://$(host)/",
    "http://{host}/",
]


@pytest.mark.parametrize("text", TRICKS)
def test_what_is_not_plain_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ToolError) as refusal:
        parse(text)
    assert refusal.value.code == "egress-denied"
    assert "secret-word" not in refusal.value.message
    assert "2.2.2.2" not in refusal.value.message


@pytest.mark.parametrize(
    ("text", "origin", "target"),
    [
        ("http://example.org", "http://example.org", "/"),
        ("HTTPS://Example.ORG:443/A?b", "https://example.org", "/A?b"),
        ("http://example.org:443/", "http://example.org:443", "/"),
        ("http://example.org:080/", "http://example.org", "/"),
        ("https://example.org?x=1", "https://example.org", "/?x=1"),
        ("https://example.org/a?b?c/d@e:f#g?h", "https://example.org", "/a?b?c/d@e:f"),
        ("https://example.org#@evil.example/", "https://example.org", "/"),
        ("https://example.org/@evil.example", "https://example.org", "/@evil.example"),
        ("https://example.org/?@evil.example", "https://example.org", "/?@evil.example"),
        ("http://[0:0::1]:8080/x", "http://[::1]:8080", "/x"),
        ("http://a_b.example/%2e%2E/;p?filter[a]={x}|y", "http://a_b.example", "/%2e%2E/;p?filter[a]={x}|y"),
        ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example", "/"),
    ],
)
def test_a_plain_url_is_read_and_its_target_kept_as_it_is(text: str, origin: str, target: str) -> None:
    url = parse(text)
    assert (url.origin, url.target) == (origin, target)
    assert parse(str(url)) == url


@pytest.mark.parametrize(
    ("reference", "leads_to"),
    [
        ("/x", "https://a.example/x"),
        ("x", "https://a.example/one/x"),
        ("./x", "https://a.example/one/x"),
        ("../x", "https://a.example/x"),
        ("../../../x", "https://a.example/x"),
        (".", "https://a.example/one/"),
        ("..", "https://a.example/"),
        ("x/../y?z", "https://a.example/one/y?z"),
        ("?n=2", "https://a.example/one/two?n=2"),
        ("#part", "https://a.example/one/two?q=1"),
        ("", "https://a.example/one/two?q=1"),
        ("//b.example/x", "https://b.example/x"),
        ("http://b.example", "http://b.example/"),
        ("x@b.example", "https://a.example/one/x@b.example"),
    ],
)
def test_a_redirects_reference_is_joined_as_the_standard_says(reference: str, leads_to: str) -> None:
    assert str(join(parse("https://a.example/one/two?q=1"), reference)) == leads_to


@pytest.mark.parametrize(
    "reference", ["\\\\b.example/", "/\\b.example/", "///b.example/", "javascript:x", "//x@b.example/", "/a b", "file:///x"]
)
def test_a_reference_that_is_not_plain_is_refused(reference: str) -> None:
    with pytest.raises(ToolError):
        join(parse("https://a.example/one"), reference)


PLAIN = "http:// https:/ HTTP:// a.example b.example 8.8.8.8 134744072 [2606::1] :80 :8080 : @ / // \\ ? # %2f %40 %00 .. . & ; ü ①"
PIECES = st.sampled_from([*words(PLAIN), " ", "\t", "\r\n", "\x00", "\u2028", "\u00ad"])
TEXTS = st.lists(PIECES, max_size=9).map(lambda pieces: "http://" + "".join(pieces)) | st.text().map("http://".__add__)


@pytest.mark.integration
@given(TEXTS)
@settings(max_examples=400, deadline=None)
@example("http://a.example@b.example")
@example("http://a.example#@b.example")
@example("http://a.example/\\@b.example")
async def test_only_what_was_judged_is_dialled_and_the_wire_says_the_same(text: str) -> None:
    judged: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        judged.append(host)
        return ["8.8.4.4"]

    async with serving(ok(b"", "Connection: close")) as server:
        dialled = Dialled(server.port)
        try:
            await send(
                Request("GET", text), Reach(connect_seconds=20, max_redirects=0), resolve=resolve, connect_address=dialled
            )
        except ToolError as error:
            assert dialled.addresses == []
            assert error.code in {"egress-denied", "source-unreachable"}
            return
    assert len(dialled.addresses) == 1
    assert dialled.addresses == (["8.8.4.4"] if judged else dialled.addresses)
    line, host = re.fullmatch(rb"GET ([!-~]+) HTTP/1.1\r\nHost: ([!-~]+)\r\n.*", server.requests[0], re.DOTALL).groups()  # type: ignore[union-attr]
    url = parse(text)
    assert (url.target.encode(), url.authority.encode()) == (line, host)
    assert judged in ([], [url.host])


def test_a_message_shows_where_a_url_leads_and_no_secret_in_it() -> None:
    assert shown("https://api.example.org:8443/v1/mcp?key=secret-word#part") == "https://api.example.org:8443/v1/mcp?…"
    assert shown("https://api.example.org/") == "https://api.example.org/"
    for text in TRICKS:
        assert "secret-word" not in shown(text)
