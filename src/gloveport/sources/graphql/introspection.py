"""The introspection queries that an endpoint is asked for its schema with."""

from __future__ import annotations

MAX_TYPE_LEVELS = 9


def _query(*, newer: bool) -> str:
    arguments = "(includeDeprecated: true)" if newer else ""
    deprecation = " isDeprecated deprecationReason"
    inner = "kind name"
    for _ in range(MAX_TYPE_LEVELS):
        inner = f"kind name ofType {{ {inner} }}"
    return f"""query IntrospectionQuery {{
  __schema {{
    queryType {{ name kind }} mutationType {{ name kind }} subscriptionType {{ name kind }}
    types {{ ...FullType }}
    directives {{ name description locations args{arguments} {{ ...InputValue }} }}
  }}
}}
fragment FullType on __Type {{
  kind name description{" isOneOf" if newer else ""}
  fields(includeDeprecated: true) {{
    name description args{arguments} {{ ...InputValue }} type {{ ...TypeRef }}{deprecation}
  }}
  inputFields{arguments} {{ ...InputValue }}
  interfaces {{ ...TypeRef }}
  enumValues(includeDeprecated: true) {{ name description{deprecation} }}
  possibleTypes {{ ...TypeRef }}
}}
fragment InputValue on __InputValue {{
  name description type {{ ...TypeRef }} defaultValue{deprecation if newer else ""}
}}
fragment TypeRef on __Type {{ {inner} }}
"""


# The second is for servers of the 2018 specification, which has no deprecated arguments.
INTROSPECTIONS = (_query(newer=True), _query(newer=False))
