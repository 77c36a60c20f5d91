"""A schema → rows. Pure: no network, no credential, no I/O. Only tasks import it: the schema is hostile.

task                what a jailed process runs: bytes → batches of rows
definition          bytes (SDL or introspection JSON) → schema, within bounds
roots               the queries and mutations, each with its address
connection_type     Relay connections, recognised by their shape
default_selection   the fields that a call gets when it selects none
schemas             GraphQL types → JSON Schema
type_table          the types that selections are checked against
compiler            all of it together: schema → rows
"""
