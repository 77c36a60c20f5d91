"""The `select` argument: whatever is in it, what is sent is one operation with one root field, valid by the schema."""

import random
from pathlib import Path
from typing import Any

import pytest
from graphql import (
    FieldNode,
    GraphQLSchema,
    OperationDefinitionNode,
    build_schema,
    get_named_type,
    is_composite_type,
    parse,
    validate,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from gloveport.errors import ToolError
from gloveport.sources.graphql.call.document import Documents
from gloveport.sources.graphql.call.selection import select_text
from gloveport.sources.graphql.compile.roots import RootField, root_fields
from tests.sources.graphql.compiled import stored

SDL = (Path(__file__).parent / "library.graphql").read_text()
SCHEMA: GraphQLSchema = build_schema(SDL)
ROOTS = {root.address: root for root in root_fields(SCHEMA)[0]}
DOCUMENTS = Documents(stored(SDL))


def document(root: RootField, select: Any, given: tuple[str, ...] = ("id",)) -> str:
    return DOCUMENTS.document(root.address, given, select_text(select))


def refusal(select: Any, root: str = "book") -> str:
    with pytest.raises(ToolError) as caught:
        document(ROOTS[root], select, tuple(ROOTS[root].field.args))
    assert caught.value.code == "bad-arguments"
    return caught.value.message


def assert_is_one_call(text: str, root: RootField) -> None:
    """One operation of the tool's kind, whose one root field is the tool's, unaliased and without directives."""
    found = parse(text)
    assert len(found.definitions) == 1
    operation = found.definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    assert operation.operation.value == root.operation
    assert not operation.directives
    (field,) = operation.selection_set.selections
    assert isinstance(field, FieldNode)
    assert (field.name.value, field.alias) == (root.name, None)
    assert not field.directives
    assert validate(SCHEMA, found) == []


@pytest.mark.parametrize(
    "select",
    [
        "id } hello",
        "id } } mutation { deleteBook(id: 1)",
        "id } mutation M { deleteBook(id: 1) ",
        "{ id } { hello }",
        "{ id } mutation { deleteBook(id: 1) }",
        "{ id } fragment F on Book { id }",
        "id #",
        "id # } hello",
        "id\n} hello {",
        "mutation { deleteBook(id: 1) }",
        "query { book { id } }",
        "subscription { bookAdded { id } }",
        "__schema { types { name } }",
        "__type(name: 1) { name }",
        "...F",
        "... on Query { hello }",
        "... on Mutation { deleteBook(id: 1) }",
        "id @include(if: true)",
        "... on Book @skip(if: false) { id }",
        "excerpt(words: $id)",
        'id """',
        '"',
        "",
        "   ",
        "{}",
        [],
        {},
        ["id } hello {"],
        [{"author } hello {": ["id"]}],
        {"id } mutation { deleteBook(id: 1) } {": True},
        "\ufeff{ id } { hello }",
        ", , { id } query { hello }",
    ],
)
def test_what_tries_to_leave_the_selection_is_refused_or_stays_inside(select: Any) -> None:
    try:
        text = document(ROOTS["book"], select)
    except ToolError as error:
        assert error.code == "bad-arguments"
    else:
        assert_is_one_call(text, ROOTS["book"])
        assert "hello" not in text
        assert "deleteBook" not in text


def test_a_comment_hides_nothing() -> None:
    assert_is_one_call(document(ROOTS["book"], "id # } hello {"), ROOTS["book"])


PIECES = st.sampled_from(
    (
        *(
            "{",
            "}",
            "(",
            ")",
            ":",
            "$",
            "@",
            "...",
            "on",
            "#",
            "\n",
            '"',
            '"""',
            "\\",
            ",",
            "!",
            "|",
            "&",
            "[",
            "]",
            "\ufeff",
        ),
        *(
            "query",
            "mutation",
            "subscription",
            "fragment",
            "id",
            "title",
            "author",
            "name",
            "words",
            "excerpt",
            "Book",
            "Query",
        ),
        *(
            "hello",
            "deleteBook",
            "__schema",
            "__typename",
            "x:",
            "(words: 1)",
            "{ id }",
            "1",
            "true",
            "null",
            "@include(if: true)",
        ),
    )
)
WORDS = st.lists(PIECES, max_size=25).map(" ".join)
SELECTS = st.recursive(
    st.one_of(WORDS, st.text(max_size=40), st.booleans(), st.none(), st.integers()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(select=SELECTS, address=st.sampled_from(["book", "node", "search", "books", "addBook"]))
def test_whatever_is_selected_one_operation_with_one_root_field_is_sent(select: Any, address: str) -> None:
    root = ROOTS[address]
    try:
        text = document(root, select, tuple(root.field.args))
    except ToolError as error:
        assert error.code == "bad-arguments"
    else:
        assert_is_one_call(text, root)


def generated(type_: Any, choice: random.Random, depth: int) -> str:
    """A selection that the schema allows, chosen at random."""
    parts = ["__typename"]
    for name, field in getattr(type_, "fields", {}).items():
        inner = get_named_type(field.type)
        if choice.random() < 0.5 or (is_composite_type(inner) and depth == 0):
            continue
        arguments = "(words: 2)" if name == "excerpt" else ""
        below = (
            f" {{ {generated(inner, choice, depth - 1)} }}" if is_composite_type(inner) and choice.random() < 0.8 else ""
        )
        parts.append(f"{name}{arguments}{below}")
    return " ".join(parts)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), address=st.sampled_from(["book", "books", "addBook", "author", "node"]))
def test_every_selection_that_the_schema_allows_is_sent(seed: int, address: str) -> None:
    root = ROOTS[address]
    select = generated(root.type, random.Random(seed), 3)
    assert_is_one_call(document(root, select, tuple(root.field.args)), root)


@pytest.mark.parametrize("address", ROOTS)
def test_the_default_selection_of_every_root_field_is_valid(address: str) -> None:
    root = ROOTS[address]
    assert_is_one_call(DOCUMENTS.document(root.address, tuple(root.field.args)), root)
    if root.connection:
        assert_is_one_call(DOCUMENTS.document(root.address, tuple(root.field.args), paged=True), root)


CIRCULAR_SDL = """
  interface Node { id: ID! }
  type Query implements Node { id: ID! secret: String relay: Query! node: Node either: Either user: User act: Mutation! }
  type Mutation { wipe: Boolean rename: Payload }
  type Payload { ok: Boolean query: Query self: Payload }
  type User implements Node { id: ID! query: Query }
  union Either = User | Query
"""
CIRCULAR = build_schema(CIRCULAR_SDL)
CIRCULAR_DOCUMENTS = Documents(stored(CIRCULAR_SDL))


@pytest.mark.parametrize(
    ("address", "select"),
    [
        ("relay", "secret"),
        ("relay", "s: __typename secret"),
        ("act", "wipe"),
        ("rename", "query { secret }"),
        ("rename", "self { query { relay { secret } } }"),
        ("user", "query { act { wipe } }"),
        ("node", "... on Query { secret }"),
        ("either", "... on Query { act { wipe } }"),
    ],
)
def test_no_selection_leads_back_to_the_root(address: str, select: str) -> None:
    with pytest.raises(ToolError, match="are tools of their own: call those"):
        CIRCULAR_DOCUMENTS.document(address, (), select)


def test_no_default_leads_back_to_the_root() -> None:
    for root in root_fields(CIRCULAR)[0]:
        text = CIRCULAR_DOCUMENTS.document(root.address, ())
        assert validate(CIRCULAR, parse(text)) == []
        assert "secret" not in text.removeprefix("query secret { secret")
        assert "wipe" not in text.removeprefix("mutation wipe { wipe")
    assert CIRCULAR_DOCUMENTS.document("user", (), "query") == "query user { user { query { __typename } } }"


def test_a_misspelt_field_is_shown_with_its_place_and_what_was_meant() -> None:
    said = refusal("title autor { name }")
    assert "Book has no field `autor`. Did you mean 'author'?" in said
    assert "It has id, title, genre" in said
    assert said.endswith("\n  title autor { name }\n        ^")


def test_the_place_is_that_of_the_callers_own_text() -> None:
    assert refusal("{\n  title\n  nmae\n}").endswith("\n    nmae\n    ^")
    assert refusal("title\nauthor { naem }").endswith("\n  author { naem }\n           ^")
    long = refusal("title " * 1 + "a: title " + " ".join(f"x{n}: title" for n in range(25)) + " titel author { name }")
    assert long.splitlines()[-2][2:][long.splitlines()[-1].index("^") - 2 :].startswith("titel")


def test_fields_of_items_asked_of_their_connection_are_explained() -> None:
    assert "write `nodes { title }`" in refusal("title", "books")


def test_a_union_without_a_fragment_is_explained() -> None:
    assert "Ask its types: `... on Book | Author | Magazine" in refusal("title", "search")
    assert "Did you mean 'Magazine'?" in refusal("... on Magazin { title }", "search")


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("excerpt", "words"),
        ('excerpt(words: "two")', "Int cannot represent"),
        ("excerpt(word: 2)", "Unknown argument"),
        ("title { length }", "must not have a selection"),
        ("x: title x: genre", "`x` is there twice"),
        ("... on Author { name }", "can never be of type"),
        ("__proto__: title", "can't start with __"),
        ("excerpt(words: $n)", "variables are not allowed"),
        ("title @skip(if: true)", "directives are not allowed"),
        ("...Fields", "named fragments are not allowed"),
        ("{ title } { genre }", "no operations"),
        (7, "where a field should be"),
        ({"title": 7}, "where a field should be"),
    ],
)
def test_what_the_schema_does_not_allow_is_refused_with_a_reason(select: Any, said: str) -> None:
    assert said in refusal(select)


def nested(depth: int) -> str:
    return "similar { nodes { " * depth + "id" + " } }" * depth


@pytest.mark.parametrize(
    ("select", "said"),
    [
        (nested(6), "nested deeper than 12"),
        (nested(2000), ""),
        ("{" * 100_000, "longer than"),
        (" ".join(f"x{n}: title" for n in range(31)), "more than 30 aliases"),
        ("... on Book { id } " * 400, "more than 300 fields"),
        ("id " * 9000, "longer than"),
        ("id " * 3500, "tokens"),
        ("pages(unit: " + "[" * 1400 + "]" * 1400 + ")", ""),
        ("pages(unit: " + "[" * 100 + "]" * 100 + ")", "Int cannot represent"),
    ],
)
def test_bombs_are_refused(select: str, said: str) -> None:
    assert said in refusal(select)


def test_lists_nested_without_end_are_refused() -> None:
    select: Any = "id"
    for _ in range(50):
        select = [select]
    assert "nested deeper" in refusal(select)


def test_the_largest_selection_that_is_allowed_is_quick_enough() -> None:
    select = "... on Book { id } " * 148
    assert_is_one_call(document(ROOTS["book"], select), ROOTS["book"])
