"""GraphQL endpoints as sources: a tool for each query and mutation.

opening         settings → introspection or schema file → an open source
compile/        schema → rows, in a jailed process (pure)
rows            the compiled form; `row_check` checks what the jailed process returned, `stored_schema` reads what was kept
source          the tools, and their calls and pages
call/           arguments → document → endpoint → value
"""
