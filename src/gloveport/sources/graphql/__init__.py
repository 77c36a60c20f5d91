"""GraphQL endpoints as sources: a tool for each query and mutation.

opening     settings → introspection or schema file → an open source
compile/    schema → root fields → tools (pure)
source      the tools, and their calls and pages
call/       arguments → document → endpoint → value
"""
