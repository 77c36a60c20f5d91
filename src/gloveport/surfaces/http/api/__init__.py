"""The HTTP API at `/v1`: runs, tools, approvals and the record, for other programs and for web pages.

`endpoint` is what each endpoint states: its roles, what it takes, what it answers · `app` serves the endpoints · `openapi`
describes them · `schemas` has the shapes that they share · the other modules have the endpoints of one noun each.
"""
