"""A schema → tools. Pure: no network, no credential, no I/O.

definition          bytes (SDL or introspection JSON) → schema, within bounds
roots               the queries and mutations, each with its address
connection_type     Relay connections, recognised by their shape
default_selection   the fields that a call gets when it selects none
schemas             GraphQL types → JSON Schema
compiler            all of it together: root fields → tools
"""
