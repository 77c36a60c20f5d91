"""Addresses of operations read well, are legal and unique, and don't depend on the order of a document."""

import keyword
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.sources.openapi.compile.addresses import OperationIdentity, assign_addresses
from gloveport.sources.openapi.compile.shared_schemas import shared_names
from gloveport.tool_names import problem_with


def address(method: str, path: str, name: str | None = None, tag: str | None = None, lists: bool | None = None) -> str:
    (found,) = assign_addresses([OperationIdentity(method, path, name, tag, lists)]).values()
    return found


@pytest.mark.parametrize(
    ("expected", "method", "path", "name", "tag"),
    [
        ("repos.create_in_org", "post", "/orgs/{org}/repos", "repos/create-in-org", "repos"),
        ("issues.create", "post", "/repos/{owner}/{repo}/issues", "issues/create", "issues"),
        ("users.user.ListUser", "get", "/users", "users.user.ListUser", "users.user"),
        ("VirtualMachines.Get", "get", "/vms/{name}", "VirtualMachines_Get", None),
        ("pets.listPets", "get", "/pets", "listPets", "pets"),
        ("pets.listPets", "get", "/v2/pets", "listPets", None),
        ("pets.list", "get", "/pets/", "pets_list", "pets"),
        ("marks.index", "get", "/marks", "Marks_index", "marks"),
        ("jobs.ListJobs", "get", "/2017-08-29/jobs", "ListJobs", None),
        ("user_management.addUser", "post", "/users", "addUser", "User Management"),
        ("core_v1.listNode", "get", "/api/v1/nodes", "listNode", "core_v1"),
        ("artifacts.import_", "post", "/artifacts:import", "artifacts.import", None),
        ("from_.get", "get", "/from/{id}", None, None),
        ("_3d.models.list", "get", "/3d/models", None, None),
        ("customers.list", "get", "/v1/customers", "GetCustomers", None),
        ("customers.get", "get", "/v1/customers/{customer}", "GetCustomersCustomer", None),
        ("customers.update", "post", "/v1/customers/{customer}", "PostCustomersCustomer", None),
        ("customers.create", "post", "/v1/customers", "PostCustomers", None),
        ("customers.delete", "delete", "/v1/customers/{customer}", "DeleteCustomersCustomer", None),
        ("charges.capture", "post", "/v1/charges/{charge}/capture", "PostChargesChargeCapture", None),
        ("customers.sources.create", "post", "/v1/customers/{c}/sources", None, None),
        ("items.replace", "put", "/items/{id}", "put_items__id_", None),
        ("items.read_item", "get", "/items/{item_id}", "read_item_items__item_id__get", None),
        ("shop.add_item", "post", "/api/v1/items/", "add_item_api_v1_items__post", "shop"),
        ("root", "get", "/", "root__get", None),
        ("items.get", "get", "/items/{item_id}", "get_items__item_id__get", None),
        ("CreateUser", "post", "/#Action=CreateUser", None, None),
        ("ListUsers", "get", "/?Action=ListUsers&Version=2010-05-08", None, None),
        ("computeInsights", "post", "/v1:computeInsights", "computeInsights", None),
        ("get", "get", "/", None, None),
        ("pets.get", "get", "/pets/{id}", "Получить", None),
        ("pets.constructor_", "get", "/pets/{id}", "constructor", "pets"),
    ],
)
def test_names_read_well(expected: str, method: str, path: str, name: str | None, tag: str | None) -> None:
    assert address(method, path, name, tag) == expected


def test_the_response_decides_between_list_and_get() -> None:
    assert address("get", "/people", lists=True) == "people.list"
    assert address("get", "/settings", lists=False) == "settings.get"
    assert address("get", "/settings") == "settings.list"


def test_collisions_are_settled_the_same_way_in_any_order() -> None:
    operations = [
        OperationIdentity("get", "/v1/things/{id}", None, None),
        OperationIdentity("get", "/v2/things/{id}", None, None),
        OperationIdentity("get", "/v2/things/{name}", None, None),
        OperationIdentity("put", "/things/{id}", "things.get", None),
        OperationIdentity("get", "/x", "x", "a"),
        OperationIdentity("get", "/x/y", "x", "a"),
    ]
    first = assign_addresses(operations)
    assert len(set(first.values())) == len(operations)
    for seed in range(20):
        random.Random(seed).shuffle(operations)
        assert assign_addresses(operations) == first
    assert first["get", "/x"] == "a.x"


@pytest.mark.long
def test_thousands_of_collisions_are_settled_soon() -> None:
    began = time.process_time()
    same = f"/{'x' * 100}"
    found = assign_addresses(
        OperationIdentity("get", f"{same}/{{{'y' * (n % 7)}{n}}}", "same", "tag") for n in range(30_000)
    )
    assert len(set(found.values())) == 30_000
    assert sorted(found.values(), key=len)[0] == "tag.same"
    keys = [f"a{'!' * (n + 1)}" for n in range(5_000)]
    named = shared_names("/components/schemas", dict.fromkeys(keys))
    assert set(named.values()) == {"a", *(f"a_{n}" for n in range(2, 5_001))}
    assert time.process_time() - began < 10


def test_a_tool_is_never_also_a_namespace() -> None:
    found = set(
        assign_addresses(
            [OperationIdentity("get", "/a", "x", None), OperationIdentity("get", "/b", "a.x.list", None)]
        ).values()
    )
    assert found == {"a.x_get", "a.x.list"}


PIECES = st.text(max_size=30) | st.sampled_from(["__proto__", "then", "None", "a.b", "…", "ﬁ", "a" * 500, "/", "..", "{x}"])
METHODS = st.sampled_from(["get", "put", "post", "delete", "head", "patch"])
OPERATIONS = st.builds(OperationIdentity, METHODS, PIECES.map("/{}".format), st.none() | PIECES, st.none() | PIECES)


@given(st.lists(OPERATIONS, max_size=12, unique_by=lambda one: (one.method, one.path)))
def test_addresses_are_legal_and_unique_whatever_the_document(operations: list[OperationIdentity]) -> None:
    found = assign_addresses(operations)
    assert len(found) == len(set(found.values())) == len(operations)
    for one in found.values():
        for step in one.split("."):
            assert problem_with(step) is None and step.isascii() and not keyword.iskeyword(step)
            assert len(step) < 200
        assert not any(other.startswith(f"{one}.") for other in found.values())


@pytest.mark.parametrize(
    "identity",
    [
        OperationIdentity("get", f"/v{'1' * 40_000}x/y", None, None),
        OperationIdentity("get", f"/{'1.' * 40_000}x/y", "get_y", None),
        OperationIdentity("get", "/a", "a" + "\u0301\u0316" * 40_000, "\u0316\u0301" * 40_000),
        OperationIdentity("post", "/" + "\u0301\u0316" * 40_000, None, None),
        OperationIdentity("get", "/a", "-" * 40_000 + "x", "-" * 40_000),
        OperationIdentity("get", "/" + "{" * 40_000, None, None),
    ],
    ids=["version", "number", "combining marks", "combining marks in a path", "tag", "braces"],
)
def test_a_long_name_takes_no_longer_than_a_short_one(identity: OperationIdentity) -> None:
    began = time.process_time()
    (found,) = assign_addresses([identity]).values()
    assert time.process_time() - began < 0.05
    assert not any(problem_with(step) for step in found.split("."))


def test_operations_that_differ_only_far_behind_have_addresses_of_their_own() -> None:
    operations = [OperationIdentity("get", f"/{'a' * 600}{end}", None, None) for end in "bcd"]
    assert len(set(assign_addresses(operations).values())) == 3
