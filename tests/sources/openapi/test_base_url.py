"""Base URLs: how server templates are filled, and which URLs are refused."""

from typing import Any

import pytest

from gloveport.config import SourceConfig
from gloveport.errors import SourceError
from gloveport.sources.openapi.call.base_url import choose_base_url, is_below

REGION = {
    "https://{region}.example.com/{stage}": {"region": {"default": "eu", "enum": ["eu", "us"]}, "stage": {"default": "v2"}}
}


def base(templates: list[str], declared: dict[str, Any] | None = None, location: str = "api.json", **config: Any) -> str:
    return choose_base_url(SourceConfig("api", "openapi", location, **config), templates, declared or {}).url


def test_variables_take_their_default_or_what_is_configured() -> None:
    (template,) = REGION
    assert base([template], REGION) == "https://eu.example.com/v2"
    assert base([template], REGION, variables={"region": "us", "stage": "v3"}) == "https://us.example.com/v3"
    assert base(
        ["https://{a}.example.com"], {"https://{a}.example.com": {"a": {"enum": ["one", "two"], "default": "else"}}}
    ) == ("https://one.example.com")


def test_a_variable_without_a_value_is_refused_with_the_way_to_give_one() -> None:
    with pytest.raises(SourceError, match=r"needs a value for \{tenant\}") as caught:
        base(["https://{tenant}.example.com"])
    assert caught.value.hint and "variables" in caught.value.hint


def test_base_url_replaces_the_servers() -> None:
    assert base(["https://{tenant}.example.com"], base_url="http://127.0.0.1:8080/api/") == "http://127.0.0.1:8080/api"


@pytest.mark.parametrize(
    ("template", "location", "expected"),
    [
        ("/v2", "https://docs.example.com/spec/api.json?raw=1", "https://docs.example.com/v2"),
        ("v2/", "https://docs.example.com/spec/api.json", "https://docs.example.com/spec/v2"),
        ("./", "https://docs.example.com/spec/api.json", "https://docs.example.com/spec"),
        ("https://api.example.com", "https://docs.example.com/api.json", "https://api.example.com"),
    ],
)
def test_a_relative_server_is_resolved_against_the_document(template: str, location: str, expected: str) -> None:
    assert base([template], location=location) == expected


def test_a_document_without_a_server_is_its_own() -> None:
    assert base([], location="https://api.example.com/openapi.json") == "https://api.example.com"


@pytest.mark.parametrize("template", ["/v2", "", "//api.example.com/v2"])
def test_a_relative_server_of_a_file_needs_a_base_url(template: str) -> None:
    with pytest.raises(SourceError, match="names no server") as caught:
        base([template])
    assert caught.value.hint and "base_url" in caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com",
        "file:///etc/passwd",
        "https://",
        "https:///x",
        "https://user:pass@example.com",
        "https://example.com@evil.com",
        "https://example.com\\@evil.com",
        "https://example.com?x=1",
        "https://example.com/#x",
        "https://exa mple.com",
        "https://example.com/\r\nHost: evil",
        "https://example.com:99999",
        "https://example.com:port",
        "https://example.com/a/../b",
        "https://example.com/%2e%2e/b",
        "https://[::1",
        "javascript://example.com",
    ],
)
def test_a_url_that_parsers_could_read_differently_is_no_server(url: str) -> None:
    with pytest.raises(SourceError, match="can't be a server"):
        base([url], base_url=url)


@pytest.mark.parametrize(
    ("url", "expected", "origin"),
    [
        ("HTTPS://API.Example.com:443/X/", "https://api.example.com/X", "https://api.example.com"),
        ("http://[::1]:8080", "http://[::1]:8080", "http://[::1]:8080"),
        ("http://example.com:443/", "http://example.com:443", "http://example.com:443"),
    ],
)
def test_a_base_url_is_normalised(url: str, expected: str, origin: str) -> None:
    assert choose_base_url(SourceConfig("api", "openapi", "api.json", base_url=url), [], {}) == (expected, origin)


@pytest.mark.parametrize(
    ("url", "below"),
    [
        ("https://a.com/v1/x", True),
        ("https://a.com/v1", True),
        ("https://a.com/v1?x=..", True),
        ("https://a.com/v1/x.y/..z/...", True),
        ("https://a.com/v10/x", False),
        ("https://a.com/v1@evil.com/x", False),
        ("https://a.com/v2/x", False),
        ("https://a.com.evil.com/v1/x", False),
        ("http://a.com/v1/x", False),
        ("https://a.com/v1/../x", False),
        ("https://a.com/v1/%2e%2E/x", False),
        ("https://a.com/v1/%25252e./x", False),
        ("https://a.com/v1/a%2f..%2fb", False),
        ("https://a.com/v1/..;x/y", False),
        ("https://a.com/v1/..%5cx", False),
    ],
)
def test_only_a_url_below_its_base_counts_as_below_it(url: str, below: bool) -> None:
    assert is_below(url, "https://a.com/v1") is below
