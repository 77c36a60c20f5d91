"""The kinds of nodes that make TypeScript more than JavaScript, and those that hold such."""

from __future__ import annotations

TYPE_PARTS = frozenset(
    {
        "type_annotation",
        "type_arguments",
        "type_parameters",
        "type_predicate_annotation",
        "asserts_annotation",
        "implements_clause",
        "override_modifier",
        "accessibility_modifier",
    }
)
TYPE_STATEMENTS = frozenset(
    {
        "interface_declaration",
        "type_alias_declaration",
        "ambient_declaration",
        "function_signature",
        "method_signature",
        "abstract_method_signature",
        "index_signature",
    }
)
CASTS = frozenset({"as_expression", "satisfies_expression"})
PARAMETERS = frozenset({"optional_parameter", "required_parameter"})
HOLDERS = PARAMETERS | {"variable_declarator"}
MEMBERS = frozenset({"public_field_definition", "method_definition"})
NAMESPACES = frozenset({"internal_module", "module"})
REFUSED = {
    "enum_declaration": "enums",
    "decorator": "decorators",
    "import_alias": "`import … =`",
    "import_require_clause": "`import … = require(…)`",
}

ERASABLE = (
    TYPE_PARTS
    | TYPE_STATEMENTS
    | CASTS
    | HOLDERS
    | MEMBERS
    | NAMESPACES
    | REFUSED.keys()
    | {"type_assertion", "non_null_expression", "binary_expression", "abstract_class_declaration"}
    | {"export_statement", "expression_statement"}
)
"""What the eraser looks at: the rest of a tree it leaves as it is."""
