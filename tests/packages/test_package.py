"""How packages are named and asked for."""

from __future__ import annotations

import pytest

from gloveport.errors import OptionError
from gloveport.packages.package import PackageId, PackageRequest


@pytest.mark.parametrize(
    ("text", "ecosystem", "name", "versions"),
    [
        ("npm:date-fns@4", "npm", "date-fns", "4"),
        ("npm:date-fns", "npm", "date-fns", ""),
        ("npm:@scope/name@^1.2.0", "npm", "@scope/name", "^1.2.0"),
        ("npm:@scope/name", "npm", "@scope/name", ""),
        ("npm:zod@>=3 <5", "npm", "zod", ">=3 <5"),
        ("pypi:tabulate", "pypi", "tabulate", ""),
        ("pypi:numpy==2.1.0", "pypi", "numpy", "==2.1.0"),
        ("pypi:Ruamel.YAML>=0.18,<1", "pypi", "ruamel-yaml", ">=0.18,<1"),
        ("pypi:tabulate@0.9.0", "pypi", "tabulate", "==0.9.0"),
    ],
)
def test_a_request_names_registry_package_and_versions(text: str, ecosystem: str, name: str, versions: str) -> None:
    request = PackageRequest.parse(text)
    assert (request.ecosystem, request.name, request.versions) == (ecosystem, name, versions)
    assert PackageRequest.parse(str(request)) == request


@pytest.mark.parametrize(
    "text",
    [
        "tabulate",
        "",
        "npm:",
        "pypi:",
        "gem:rails",
        "npm:../x",
        "npm:a/b",
        "npm:@a/../b",
        "pypi:a/b",
        "pypi:.x",
        "npm:a b",
        "pypi:x[extra]",
        "npm:a@1\n2",
        "npm:" + "a" * 300,
        "npm:.hidden",
        "npm:@/x",
        "npm:@.a/x",
    ],
)
def test_a_request_that_is_not_understood_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        PackageRequest.parse(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text", ["npm:date-fns@4.1.0", "npm:@scope/name@1.0.0-beta.1", "pypi:numpy@2.1.0", "pypi:a@1!2.0+x"]
)
def test_an_id_is_written_and_read_again(text: str) -> None:
    assert str(PackageId.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["npm:a@", "npm:a@../..", "npm:a@1/2", "npm:../../x@1", "pypi:Not-Normal@1", "x:a@1", "npm:@1"]
)
def test_an_id_that_could_lead_out_of_the_store_is_refused(text: str) -> None:
    with pytest.raises(OptionError):
        PackageId.parse(text)
