"""Read a document of any dialect and present it as OpenAPI 3.

document    bytes in JSON or YAML → the parsed document and its dialect
yaml        YAML → plain values; loaded only for a document in YAML
references  follows `$ref`s, within the document and to the files beside it
operations  the view of an OpenAPI 3 document
swagger2    the same view of a Swagger 2.0 document
discovery   the same view of a Google discovery document
"""
