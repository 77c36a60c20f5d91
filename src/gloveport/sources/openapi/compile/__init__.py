"""Compile a document into operations. Nothing here does I/O or sees a credential: bytes go in, values come out.

task              what the jailed process runs: a document → frames
document/         reads a document of any dialect and presents it as OpenAPI 3
compiler          compiles a document: the order of the steps below, and the limits on the whole
addresses         names each operation
parameters        how each parameter is sent, and its schema
request_body      the media types of a body, and whether its properties become arguments
arguments         parameters and body → one object of arguments
responses         what a successful call returns
paging            how to ask for the next page
schemas           schemas of every dialect → JSON Schema 2020-12, by the rules of `sources/schemas/`
argument_schemas  bounds what validating arguments costs, over all schemas of a document
shared_schemas    names for shared schemas, and which differ between input and output
media_types       the kind of body that each media type means
security          security schemes → credential slots
servers           servers → absolute URLs with their variables
"""
